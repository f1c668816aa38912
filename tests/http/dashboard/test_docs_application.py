"""The site of the docs: at the dashboard's hosts, below `/docs`, under its own policy."""

import gzip
from pathlib import Path
from typing import Any

import pytest

from roost.http.dashboard.docs_application import DocsApp
from roost.http.dashboard.static_files import StaticFiles
from roost.http.stack.address import HostAddresses
from roost.http.stack.host_router import HostRouter
from tests.http.asgi import call

TEXT = "<h1>Agents</h1>" * 100
SCRIPT = "export const words = 'many words';" * 100


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> HostRouter:
    folder = tmp_path_factory.mktemp("docs")
    for name, content in (
        ("index.html", "<h1>Docs</h1>"),
        ("404.html", "<h1>Not found</h1>"),
        ("guides/agents/index.html", TEXT),
        ("api/index.html", '<meta property="csp-nonce" nonce="__NONCE__">'),
        ("assets/bundle.0a1b2c3d.js", SCRIPT),
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return serving(folder)


def serving(folder: Path) -> HostRouter:
    return HostRouter(DocsApp(behind, StaticFiles(folder)), HostAddresses(domain="example.org", public_port=8642))


async def behind(_scope: Any, _receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 404, "headers": []})
    await send({"type": "http.response.body", "body": b"behind"})


async def test_pages_and_files(app: HostRouter) -> None:
    page = await call(app, "/docs/guides/agents/")
    assert (page.status, page.body.decode()) == (200, TEXT)
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["cache-control"] == "no-cache"
    packed = await call(app, "/docs/guides/agents/", headers=[("accept-encoding", "gzip")])
    assert gzip.decompress(packed.body).decode() == TEXT
    kept = await call(app, "/docs/guides/agents/", headers=[("if-none-match", page.headers["etag"])])
    assert (kept.status, kept.body) == (304, b"")
    script = await call(app, "/docs/assets/bundle.0a1b2c3d.js")
    assert (script.body.decode(), "immutable" in script.headers["cache-control"]) == (SCRIPT, True)
    head = await call(app, "/docs/", method="HEAD")
    assert (head.status, head.body, head.headers["content-length"]) == (200, b"", "13")


@pytest.mark.parametrize("path", ["/docs", "/docs/guides/agents"])
async def test_a_page_without_a_slash_leads_to_it(app: HostRouter, path: str) -> None:
    sent = await call(app, path)
    assert (sent.status, sent.headers["location"]) == (308, f"{path}/")


@pytest.mark.parametrize("path", ["/docs/nothing", "/docs/guides/", "/docs/guides/agents/index", "/docs/api/x.js"])
async def test_missing_pages_are_not_found(app: HostRouter, path: str) -> None:
    sent = await call(app, path)
    assert (sent.status, sent.body) == (404, b"<h1>Not found</h1>")


async def test_the_policy_admits_the_docs_and_the_description_alone(app: HostRouter) -> None:
    """The scripts of the site share the origin of the dashboard, and must not reach its APIs."""
    for path in ("/docs/", "/docs/assets/bundle.0a1b2c3d.js", "/docs/nothing"):
        policy = (await call(app, path, host="localhost:9000")).headers["content-security-policy"]
        rules = dict(part.split(" ", 1) for part in policy.split("; "))
        assert rules["default-src"] == "'none'"
        assert rules["script-src"] == "http://localhost:9000/docs/"
        assert rules["connect-src"] == "http://localhost:9000/docs/ http://localhost:9000/openapi"
        assert rules["style-src"].startswith("http://localhost:9000/docs/ 'sha256-")
        assert "unsafe" not in policy
    first, second = [await call(app, "/docs/api/") for _ in range(2)]
    nonce = first.body.decode().partition('nonce="')[2].partition('"')[0]
    assert f"'nonce-{nonce}'" in first.headers["content-security-policy"]
    assert first.body != second.body


async def test_where_it_is_not(app: HostRouter) -> None:
    for host in (
        "agents.example.org",
        "api.example.org",
        "abcdefghijklmnop.agents.example.org",
        "x.gateways.example.org",
    ):
        assert b"<h1>" not in (await call(app, "/docs/", host=host)).body, host
    for path in ("/", "/docsx", "/v0/docs", "/login"):
        assert (await call(app, path)).body == b"behind", path
    assert (await call(app, "/docs/", method="POST")).body == b"behind"
    assert (await call(app, "/docs/../docs/")).status == 404


async def test_without_a_built_site_a_page_says_what_to_do(tmp_path: Path) -> None:
    sent = await call(serving(tmp_path / "docs"), "/docs/guides/agents/")
    assert (sent.status, sent.headers["content-type"]) == (404, "text/plain; charset=utf-8")
    assert "make docs" in sent.body.decode()
