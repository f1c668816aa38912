"""Single-page sites: what a site on its own origin answers for paths that it does not contain."""

from collections.abc import Mapping

import pytest

from roost.storage.content.unixfs import dagpb
from roost.storage.content.unixfs.cid import DAG_PB, IDENTITY, RAW, Cid
from roost.storage.content.unixfs.dagpb import PBLink, UnixfsData, UnixfsKind
from roost.storage.gateways.model import AccessControlKind, Plugin
from tests.http.storage_gateway.gateway_env import GatewayEnv

A_WEEK = "public, max-age=604800, stale-while-revalidate=2678400"
BROWSER = "text/html,application/xhtml+xml,*/*;q=0.8"
INDEX, PAGE = b"<!doctype html><script>route()</script>", b"<!doctype html><p>no such page"
RULES = b"""/old/* /new/:splat 301
/out https://example.com/?a=1 302
/gone/* /gone.html 410
/bare /missing.html 451
/lost /missing.html 200
/home /docs 200
/real.txt /index.html 200
/api/* /index.html 404
/* /index.html 200
"""
SITE = {"_redirects": RULES, "index.html": INDEX, "gone.html": b"<!doctype html>gone", "real.txt": b"real"}


async def site(env: GatewayEnv, files: Mapping[str, bytes] = SITE) -> str:
    """The host of a site that has a folder `docs`, too."""
    _, root = await env.nested({"docs": {"index.html": b"<!doctype html>docs"}, "": files})
    return f"{root}.ipfs.mine-gate"


async def test_a_route_of_a_page_is_the_page(env: GatewayEnv) -> None:
    own = await site(env)
    index = await env.get("/index.html", own)
    sent = await env.get("/users/7?tab=1", own)
    assert (sent.status, sent.body, sent.headers["content-type"]) == (200, INDEX, "text/html; charset=utf-8")
    assert (sent.headers["etag"], sent.headers["cache-control"]) == (index.headers["etag"], A_WEEK)
    assert "content-security-policy" not in sent.headers
    assert sent.headers["x-ipfs-path"] == index.headers["x-ipfs-path"]
    again = await env.get("/users/7", own, if_none_match=sent.headers["etag"])
    assert (again.status, again.headers["cache-control"]) == (304, A_WEEK)
    part = await env.get("/users/7", own, range="bytes=2-8")
    assert (part.status, part.body) == (206, INDEX[2:9])
    head = await env.get("/users/7?tab=1", own, method="HEAD")
    assert (head.status, head.headers, head.body) == (200, sent.headers, b"")
    assert (await env.get("/home", own)).body == b"<!doctype html>docs"


async def test_existing_paths_are_never_replaced(env: GatewayEnv) -> None:
    own = await site(env)
    assert (await env.get("/real.txt", own)).body == b"real"
    assert (await env.get("/docs", own)).status == 301
    assert (await env.get("/_redirects", own)).body == RULES
    assert (await env.get("/docs/", own)).headers["cache-control"].endswith("immutable")


async def test_redirects_keep_the_query_and_escape_the_path(env: GatewayEnv) -> None:
    own = await site(env)
    moved = await env.get("/old/a%20b/%0D%0AX:%20y?c=d&pinataGatewayToken=t", own)
    assert (moved.status, moved.headers["cache-control"]) == (301, A_WEEK)
    assert moved.headers["location"] == "/new/a%20b/%0D%0AX%3A%20y?c=d&pinataGatewayToken=t"
    out = await env.get("/out?b=2&pinataGatewayToken=t", own, method="HEAD")
    assert (out.status, out.headers["location"], out.body) == (302, "https://example.com/?a=1&b=2", b"")


@pytest.mark.parametrize(
    ("path", "status", "body"),
    [("/gone/a", 410, b"<!doctype html>gone"), ("/api/x", 404, INDEX), ("/bare", 451, b"ERR_ID:00006")],
)
async def test_pages_of_errors(env: GatewayEnv, path: str, status: int, body: bytes) -> None:
    own = await site(env)
    sent = await env.get(path, own)
    assert (sent.status, sent.body[: len(body)]) == (status, body)
    assert not {"etag", "accept-ranges"} & set(sent.headers)
    fields = {"range": "bytes=0-1", "if_none_match": "*", "if_match": '"x"'}
    again = await env.get(f"{path}?img-width=1&download=true", own, **fields)
    assert (again.status, again.headers, again.body) == (status, sent.headers, sent.body)
    head = await env.get(path, own, method="HEAD")
    assert (head.status, head.headers, head.body) == (status, sent.headers, b"")


@pytest.mark.parametrize("rules", [b"/lost /missing.html 200", None])
async def test_a_page_for_missing_paths(env: GatewayEnv, rules: bytes | None) -> None:
    files = {"404.html": PAGE} | ({} if rules is None else {"_redirects": rules})
    own = await site(env, files)
    sent = await env.get("/lost", own, accept=BROWSER)
    assert (sent.status, sent.body, sent.headers["cache-control"]) == (404, PAGE, A_WEEK)
    assert "accept" in sent.headers["vary"].lower()
    for accept in ("*/*", "image/webp,*/*;q=0.8", "text/html;q=0"):
        plain = await env.get("/lost", own, accept=accept)
        assert (plain.status, plain.body[:12]) == (404, b"ERR_ID:00006")
    without = await env.get("/lost", await site(env, {"a": b""}), accept=BROWSER)
    assert without.status == 404


async def test_only_on_an_origin_that_belongs_to_the_site(env: GatewayEnv) -> None:
    root = (await site(env)).partition(".")[0]
    for target in (f"/ipfs/{root}/users/7", f"/ipfs/{root}/old/a"):
        sent = await env.get(target, accept=BROWSER)
        assert (sent.status, sent.body[:12]) == (404, b"ERR_ID:00006")
    assert (await env.get("/users/7", f"{root}.ipfs.their-gate")).status == 404
    leaf = Cid(1, RAW, IDENTITY, b"/* https://evil.example")
    node = dagpb.encode_node([PBLink(leaf, "_redirects", 1)], UnixfsData(UnixfsKind.DIRECTORY))
    anyone = Cid(1, DAG_PB, IDENTITY, node)
    sent = await env.get(f"/ipfs/{anyone}/_redirects")
    assert sent.status == 200
    assert (await env.get("/a", f"{anyone}.ipfs.mine-gate", accept=BROWSER)).status == 404


@pytest.mark.parametrize("fields", [{"query": "?format=car"}, {"accept": "application/vnd.ipld.raw"}])
async def test_programs_get_no_other_content(env: GatewayEnv, fields: dict[str, str]) -> None:
    own = await site(env)
    query = fields.pop("query", "")
    assert (await env.get(f"/users/7{query}", own, **fields)).status == 404


async def test_access_controls_and_swaps_hold(env: GatewayEnv) -> None:
    own = await site(env)
    mine = env.ids["mine-gate"]
    await env.gateways.install_plugin(env.storage.tenant_id, mine, Plugin.HOT_SWAPS)
    assert (await env.get("/users/7", own)).headers["cache-control"] == "public, no-cache"
    assert (await env.get("/old/a", own)).headers["cache-control"] == "public, no-cache"
    await env.gateways.add_allowlist_entry(env.storage.tenant_id, mine, AccessControlKind.ADDRESS, "203.0.113.0/24")
    for target in ("/users/7", "/old/a", "/gone/a"):
        sent = await env.get(target, own, accept=BROWSER)
        assert (sent.status, sent.body[:12]) == (401, b"ERR_ID:00024")


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        (b"/a /b\n/c javascript:alert(1)", "in line 2: 'to' must be"),
        (b"/* /index.html 200\n" + b"#" * 65_536, "more than 65,536 bytes"),
    ],
)
async def test_errors_of_the_file(env: GatewayEnv, rules: bytes, reason: str) -> None:
    own = await site(env, {**SITE, "_redirects": rules, "404.html": PAGE})
    sent = await env.get("/users/7", own, accept=BROWSER)
    assert (sent.status, sent.headers["content-type"]) == (500, "text/plain; charset=utf-8")
    assert reason in sent.body.decode()
    assert sent.headers["cache-control"] == "no-store"
    assert (await env.get("/real.txt", own)).status == 200


async def test_a_folder_is_no_redirects_file(env: GatewayEnv) -> None:
    root = (await env.nested({"_redirects": {"a": b""}, "": {}}))[-1]
    sent = await env.get("/a", f"{root}.ipfs.mine-gate")
    assert (sent.status, sent.body) == (500, b"The _redirects file cannot be read\n")
