"""Pages and files of the dashboard, at its hosts and at no other."""

import gzip
import re
from pathlib import Path
from typing import Any

import pytest

from roost.http.dashboard.application import DashboardApp
from roost.http.dashboard.static_files import StaticFiles
from roost.http.stack.address import HostAddresses
from roost.http.stack.host_router import HostRouter
from tests.http.asgi import Sent, call
from tests.http.fixed_ports import FixedPorts

INDEX = '<meta property="csp-nonce" nonce="__NONCE__" content="__NONCE__"><script src="/assets/main-0a1b2c3d.js">'
SCRIPT = "export const words = 'many words';" * 100
BROWSER = [("accept", "text/html,*/*;q=0.8")]
REMOTE = ("192.0.2.7", 5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("static")
    (folder / "assets").mkdir()
    for name, content in (
        ("index.html", INDEX),
        ("assets/main-0a1b2c3d.js", SCRIPT),
        ("icon.svg", "<svg/>"),
        ("notice.txt", "short"),
    ):
        (folder / name).write_text(content)
    (folder / "link.txt").symlink_to("/etc/hostname")
    return folder


async def api(_scope: Any, _receive: Any, send: Any) -> None:
    """The application behind, which knows no such path."""
    await send({"type": "http.response.start", "status": 404, "headers": []})
    await send({"type": "http.response.body", "body": b"behind"})


def serving(folder: Path, **options: Any) -> HostRouter:
    addresses = HostAddresses(**{"domain": "example.org", "public_port": 8642, **options})
    return HostRouter(DashboardApp(api, StaticFiles(folder)), addresses)


@pytest.fixture(scope="module")
def app(folder: Path) -> HostRouter:
    return serving(folder)


@pytest.mark.parametrize("path", ["/", "/login", "/agents", "/agents/a1/files", "/storage/files", "/files/x", "/ipfs"])
async def test_each_page_is_the_index_with_a_nonce_of_its_own(app: HostRouter, path: str) -> None:
    first, second = [await call(app, path, headers=BROWSER) for _ in range(2)]
    assert (first.status, first.headers["cache-control"]) == (200, "no-cache")
    assert first.headers["content-type"] == "text/html; charset=utf-8"
    policy = first.headers["content-security-policy"]
    nonce = re.search(r"style-src 'self' 'nonce-([0-9a-f]{32})'", policy)
    assert nonce
    assert first.body.decode() == INDEX.replace("__NONCE__", nonce[1])
    assert "etag" not in first.headers
    assert second.headers["content-security-policy"] != policy
    assert policy.replace(nonce[1], "N") == (
        "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-N'; img-src 'self' data: blob:; "
        "font-src 'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; "
        "form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'"
    )
    assert first.headers["referrer-policy"] == "no-referrer"
    assert first.headers["cross-origin-opener-policy"] == "same-origin"
    assert "camera=()" in first.headers["permissions-policy"]


async def test_a_file_is_kept_by_the_browser_for_good(app: HostRouter) -> None:
    path = "/assets/main-0a1b2c3d.js"
    plain = await call(app, path)
    assert (plain.body.decode(), plain.headers["cache-control"]) == (SCRIPT, "public, max-age=31536000, immutable")
    for accepted in ("gzip", "br, gzip;q=0.5", "deflate,GZIP"):
        packed = await call(app, path, headers=[("accept-encoding", accepted)])
        assert (packed.headers["content-encoding"], packed.headers["vary"]) == ("gzip", "accept-encoding")
        assert gzip.decompress(packed.body).decode() == SCRIPT
        assert packed.headers["content-length"] == str(len(packed.body))
    for refused in ("", "br", "gzip;q=0", "x-gzip-like"):
        assert "content-encoding" not in (await call(app, path, headers=[("accept-encoding", refused)])).headers
    tag = plain.headers["etag"]
    assert tag != packed.headers["etag"]
    for condition in (tag, f'"x", W/{tag}', "*"):
        kept = await call(app, path, headers=[("if-none-match", condition)])
        assert (kept.status, kept.body, kept.headers["etag"]) == (304, b"", tag)
    assert (await call(app, path, headers=[("if-none-match", '"other"')])).status == 200
    other = await call(app, "/notice.txt", headers=[("accept-encoding", "gzip")])
    assert (other.body, other.headers["cache-control"]) == (b"short", "no-cache")
    assert "sandbox" in (await call(app, "/icon.svg")).headers["content-security-policy"]


async def test_a_head_has_the_headers_alone(app: HostRouter) -> None:
    for path in ("/", "/assets/main-0a1b2c3d.js"):
        got, asked = await call(app, path), await call(app, path, method="HEAD")
        assert (asked.status, asked.body) == (200, b"")
        assert asked.headers["content-length"] == got.headers["content-length"]


@pytest.mark.parametrize("host", ["example.org", "localhost", "127.0.0.1:8642", "[::1]"])
@pytest.mark.parametrize("client", [("127.0.0.1", 5), REMOTE])
async def test_where_it_is_served(app: HostRouter, host: str, client: tuple[str, int]) -> None:
    assert b"csp-nonce" in (await call(app, "/login", host=host, headers=BROWSER, client=client)).body


@pytest.mark.parametrize(
    "host",
    [
        *("agents.example.org", "api.example.org", "uploads.example.org", "shop.gateways.example.org"),
        *("abcdefghijklmnop.agents.example.org", "www.example.org", "example.com", "example.org.evil.example"),
    ],
)
async def test_where_it_is_not(app: HostRouter, host: str) -> None:
    for path in ("/", "/login", "/assets/main-0a1b2c3d.js", "/index.html"):
        sent = await call(app, path, host=host, headers=BROWSER)
        assert b"csp-nonce" not in sent.body
        assert SCRIPT.encode() not in sent.body


async def test_paths_of_the_apis_and_of_nothing(app: HostRouter) -> None:
    for path in ("/v0/unknown", "/v3/unknown", "/api/v1/x", "/pinning/x", "/healthz", "/openapi", "/.well-known/roost"):
        assert (await call(app, path, headers=BROWSER)).body == b"behind", path
    for path in (
        "/v0",
        "/v0/issues",
        "/a/../login",
        "/a//b",
        "/%2e%2e/etc/passwd",
        "/v0/sign-in",
        "/v1/models",
        "/a%2fb",
    ):
        assert (await call(app, path, headers=BROWSER)).status == 404, path
    for path in ("/assets/gone.js", "/link.txt", "/models", "/agents"):
        assert (await call(app, path, headers=[("accept", "*/*")])).body == b"behind", path
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert (await call(app, "/login", method=method, headers=BROWSER)).body == b"behind", method


async def test_ports_instead_of_names(folder: Path) -> None:
    app = serving(folder, domain="203.0.113.7", ports=FixedPorts(range(9000, 9002)))
    assert b"csp-nonce" in (await call(app, "/login", host="203.0.113.7", headers=BROWSER, client=REMOTE)).body
    assert b"csp-nonce" not in (await call(app, "/gateways/shop/ipfs/cid", host="203.0.113.7", client=REMOTE)).body


async def test_without_built_files_a_page_says_what_to_do(tmp_path: Path) -> None:
    app = serving(tmp_path / "static")
    for path in ("/", "/login"):
        page: Sent = await call(app, path, headers=BROWSER)
        assert (page.status, page.headers["content-type"]) == (200, "text/plain; charset=utf-8")
        assert "make dashboard" in page.body.decode()
        assert (page.headers["cache-control"], page.headers["refresh"]) == ("no-store", "5")
    assert (await call(app, "/login")).body == b"behind"
