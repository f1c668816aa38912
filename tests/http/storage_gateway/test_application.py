import hashlib

import pytest

from roost.http.storage_gateway.response import ResponseAborted
from roost.storage.content.errors import ContentDamaged
from roost.storage.content.model import ContentNetwork
from roost.storage.content.unixfs import car, dagpb
from roost.storage.content.unixfs.cid import DAG_PB, Cid
from roost.storage.content.unixfs.dagpb import PBLink, UnixfsData, UnixfsKind
from roost.storage.content.unixfs.profile import V0
from tests.http.storage_gateway import crafted_content
from tests.http.storage_gateway.gateway_env import BIG, NAMES, GatewayEnv

FOR_GOOD = "public, max-age=29030400, immutable"


async def test_a_file_is_served_with_what_its_cid_says_of_it(env: GatewayEnv) -> None:
    cid = await env.file(b"hello")
    sent = await env.get(f"/ipfs/{cid}")
    assert (sent.status, sent.body) == (200, b"hello")
    expected = {
        "etag": f'"{cid}"',
        "cache-control": FOR_GOOD,
        "x-ipfs-path": f"/ipfs/{cid}",
        "x-ipfs-roots": str(cid),
        "content-type": "text/plain; charset=utf-8",
        "content-length": "5",
        "accept-ranges": "bytes",
        "access-control-allow-origin": "*",
    }
    assert expected.items() <= sent.headers.items()
    assert "set-cookie" not in sent.headers
    assert "access-control-allow-credentials" not in sent.headers


@pytest.mark.parametrize("field", [{}, {"range": "bytes=1-3"}, {"if_none_match": "*"}])
async def test_head_has_the_headers_of_get_and_no_body(env: GatewayEnv, field: dict[str, str]) -> None:
    cid = await env.file(BIG)
    got = await env.get(f"/ipfs/{cid}", **field)
    head = await env.get(f"/ipfs/{cid}", method="HEAD", **field)
    assert (head.status, head.headers, head.body) == (got.status, got.headers, b"")


async def test_a_cid_of_version_0_is_served_too(env: GatewayEnv) -> None:
    cid = (await env.nested({"": {"a.txt": b"x" * 300_000}}, profile=V0))[-1]
    assert str(cid).startswith("Qm")
    sent = await env.get(f"/ipfs/{cid}/a.txt")
    assert sent.body == b"x" * 300_000
    again = await env.get(f"/ipfs/{cid.v1()}/a.txt")
    assert again.body == sent.body


@pytest.mark.parametrize(
    ("range_header", "begin", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=5-", 5, len(BIG)),
        ("bytes=-7", len(BIG) - 7, len(BIG)),
        ("bytes=1048570-1048590", 1048570, 1048591),
        ("bytes=2999990-9999999", 2999990, len(BIG)),
    ],
)
async def test_range_has_its_bytes_and_headers(env: GatewayEnv, range_header: str, begin: int, end: int) -> None:
    sent = await env.get(f"/ipfs/{await env.file(BIG)}", range=range_header)
    assert sent.status == 206
    assert sent.body == BIG[begin:end]
    assert sent.headers["content-range"] == f"bytes {begin}-{end - 1}/{len(BIG)}"
    assert sent.headers["content-length"] == str(end - begin)


@pytest.mark.parametrize("range_header", ["lines=0-1", "bytes=5-1", "bytes=x", "bytes=-"])
async def test_unsupported_range_sends_everything(env: GatewayEnv, range_header: str) -> None:
    sent = await env.get(f"/ipfs/{await env.file(BIG)}", range=range_header)
    assert (sent.status, sent.body) == (200, BIG)


@pytest.mark.parametrize("range_header", ["bytes=5-", "bytes=-0", "bytes=9-10"])
async def test_a_range_beyond_the_end(env: GatewayEnv, range_header: str) -> None:
    sent = await env.get(f"/ipfs/{await env.file(b'12345')}", range=range_header)
    assert sent.status == 416
    assert sent.headers["content-range"] == "bytes */5"


async def test_a_range_holds_only_for_the_content_that_the_client_means(env: GatewayEnv) -> None:
    cid = await env.file(BIG)
    mine = await env.get(f"/ipfs/{cid}", range="bytes=0-0", if_range=f'"{cid}"')
    other = await env.get(f"/ipfs/{cid}", range="bytes=0-0", if_range='"other"')
    assert (mine.status, other.status) == (206, 200)


@pytest.mark.parametrize("tag", ['"{}"', 'W/"{}"', '"x", "{}"', "*"])
async def test_content_that_the_client_has_is_not_sent_again(env: GatewayEnv, tag: str) -> None:
    cid = await env.file(b"hello")
    sent = await env.get(f"/ipfs/{cid}", if_none_match=tag.format(cid))
    assert (sent.status, sent.body) == (304, b"")
    assert (sent.headers["etag"], sent.headers["cache-control"]) == (f'"{cid}"', FOR_GOOD)


async def test_folders_are_entered_by_name(env: GatewayEnv) -> None:
    sub, root = await env.nested({"sub dir": NAMES, "": {}})
    sent = await env.get(f"/ipfs/{root}/sub%20dir/plain.txt")
    assert sent.body == NAMES["plain.txt"]
    roots = sent.headers["x-ipfs-roots"].split(",")
    assert roots[:2] == [str(root), str(sub)]
    assert sent.headers["etag"] == f'"{roots[2]}"'
    assert sent.headers["x-ipfs-path"] == f"/ipfs/{root}/sub%20dir/plain.txt"
    strange = await env.get(f"/ipfs/{root}/sub%20dir/what%3F%20100%25%20%231.bin")
    assert (strange.status, strange.body) == (200, b"\0\1\2")


async def test_a_folder_wants_a_slash(env: GatewayEnv) -> None:
    _, root = await env.nested({"sub dir": NAMES, "": {}})
    sent = await env.get(f"/ipfs/{root}/sub%20dir?filename=a%20b&x=%0D%0Ay:%20z")
    assert sent.status == 301
    assert sent.headers["location"] == f"/ipfs/{root}/sub%20dir/?filename=a%20b&x=%0D%0Ay:%20z"


async def test_a_folder_is_listed_safely(env: GatewayEnv) -> None:
    cid = await env.folder({**NAMES, "javascript:alert(1)": b""})
    sent = await env.get(f"/ipfs/{cid}/")
    page = sent.body.decode()
    assert sent.headers["content-type"] == "text/html; charset=utf-8"
    assert sent.headers["etag"].startswith('"DirIndex-')
    assert sent.headers["etag"].endswith(f'_CID-{cid}"')
    assert "default-src 'none'" in sent.headers["content-security-policy"]
    assert sent.headers["cache-control"] == "public, max-age=604800, stale-while-revalidate=2678400"
    assert "<b>" not in page
    assert "a &amp; &lt;b&gt;.svg" in page
    assert 'href="./javascript%3Aalert%281%29"' in page
    assert 'href="./what%3F%20100%25%20%231.bin"' in page
    assert (await env.get(f"/ipfs/{cid}/", if_none_match=sent.headers["etag"])).status == 304


async def test_an_index_stands_for_its_folder(env: GatewayEnv) -> None:
    cid = await env.folder({"index.html": b"<p>hi", "a": b""})
    label = str(cid)
    sent = await env.get("/", f"{label}.ipfs.mine-gate")
    assert (sent.status, sent.body) == (200, b"<p>hi")
    assert sent.headers["content-type"] == "text/html; charset=utf-8"
    assert sent.headers["cache-control"] == FOR_GOOD
    assert sent.headers["etag"] == f'"{cid}"'


@pytest.mark.parametrize("name", ["page.html", "a%20%26%20%3Cb%3E.svg"])
async def test_active_content_runs_on_its_own_origin_only(env: GatewayEnv, name: str) -> None:
    cid = await env.folder(NAMES)
    shared = await env.get(f"/ipfs/{cid}/{name}")
    assert shared.headers["content-security-policy"] == "sandbox"
    assert shared.headers["content-disposition"].startswith("attachment;")
    own = await env.get(f"/{name}", f"{cid}.ipfs.mine-gate")
    assert own.body == shared.body
    assert "content-security-policy" not in own.headers
    assert "content-disposition" not in own.headers


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("filename=a.txt", 'inline; filename="a.txt"'),
        ("filename=a.txt&download=true", 'attachment; filename="a.txt"'),
        ("filename=%22%0D%0Ax:%20y%22", "inline; filename=\"_x: y_\"; filename*=UTF-8''%22x%3A%20y%22"),
        ("filename=%E2%82%AC%20rates", "inline; filename=\"_ rates\"; filename*=UTF-8''%E2%82%AC%20rates"),
        ("filename=../../etc/passwd", 'inline; filename="....etcpasswd"'),
    ],
)
async def test_the_name_of_a_download(env: GatewayEnv, query: str, expected: str) -> None:
    sent = await env.get(f"/ipfs/{await env.file(b'hello')}?{query}")
    assert sent.headers["content-disposition"] == expected


@pytest.mark.parametrize(
    "path",
    ["no-cid", "", "bafy", "Qm", "x" * 10_000, "{cid}/../x", "{cid}/%2e%2e/x", "{cid}//a", "{cid}/%ff", "{upper}"],
)
async def test_malformed_content_addresses_are_refused(env: GatewayEnv, path: str) -> None:
    cid = await env.folder(NAMES)
    sent = await env.get("/ipfs/" + path.format(cid=cid, upper="B" + str(cid)[1:]))
    assert sent.status == 400
    assert sent.body.startswith(b"ERR_ID:00004")
    assert sent.headers["content-type"] == "text/plain; charset=utf-8"


@pytest.mark.parametrize(
    ("query", "status"),
    [("format=zip", 406), ("format=dag-json", 406), ("format=car&dag-scope=x", 400), ("format=car&car-version=2", 400)],
)
async def test_forms_that_are_not_served(env: GatewayEnv, query: str, status: int) -> None:
    assert (await env.get(f"/ipfs/{await env.file(b'hello')}?{query}")).status == status


async def test_the_page_of_a_folder_has_its_tag_and_its_path(env: GatewayEnv) -> None:
    root = await env.folder({"index.html": b"<!doctype html><p>hi"})
    sent = await env.get(f"/ipfs/{root}/")
    assert sent.body == b"<!doctype html><p>hi"
    assert (sent.headers["etag"], sent.headers["x-ipfs-path"]) == (f'"{root}"', f"/ipfs/{root}/")
    assert (await env.get(f"/ipfs/{root}/", if_none_match=f'"{root}"')).status == 304
    assert (await env.get(f"/ipfs/{root}/index.html")).headers["etag"] != f'"{root}"'


async def test_a_symbolic_link_gives_its_target(env: GatewayEnv) -> None:
    node = dagpb.encode_node([], UnixfsData(UnixfsKind.SYMLINK, b"../etc/passwd"))
    link = Cid.for_block(DAG_PB, node)
    top = dagpb.encode_node([PBLink(link, "a", len(node))], UnixfsData(UnixfsKind.DIRECTORY))
    root = await crafted_content.put(env, Cid.for_block(DAG_PB, top), [(link, node), (Cid.for_block(DAG_PB, top), top)])
    sent = await env.get(f"/ipfs/{root}/a")
    assert (sent.status, sent.body, sent.headers["content-type"]) == (200, b"../etc/passwd", "inode/symlink")
    assert (await env.get(f"/ipfs/{root}/a", if_none_match=sent.headers["etag"])).status == 304
    assert (await env.get(f"/ipfs/{root}/a/")).status == 404


async def test_a_path_that_leads_nowhere(env: GatewayEnv) -> None:
    cid = await env.folder(NAMES)
    for path in ("nothing", "plain.txt/x", "plain.txt/", "/".join("x" * 100), "a%2Fb"):
        sent = await env.get(f"/ipfs/{cid}/{path}")
        assert (sent.status, sent.body[:12]) == (404, b"ERR_ID:00006"), path


async def test_a_block_is_what_its_cid_says(env: GatewayEnv) -> None:
    cid = await env.folder(NAMES)
    by_query = await env.get(f"/ipfs/{cid}?format=raw")
    by_header = await env.get(f"/ipfs/{cid}", accept="application/vnd.ipld.raw")
    assert by_query.body == by_header.body
    assert cid.matches(by_query.body)
    assert by_query.headers["content-type"] == "application/vnd.ipld.raw"
    assert by_query.headers["content-disposition"] == f'attachment; filename="{cid}.bin"'
    assert by_query.headers["cache-control"] == FOR_GOOD
    assert by_query.headers["etag"] == f'"{cid}.raw"'


@pytest.mark.parametrize(("scope", "leaves"), [("all", 12), ("entity", 12), ("block", 0)])
async def test_a_car_proves_a_file(env: GatewayEnv, scope: str, leaves: int) -> None:
    cid = await env.file(BIG)
    sent = await env.get(f"/ipfs/{cid}?format=car&dag-scope={scope}")
    reader = car.CarReader()
    blocks = list(reader.feed(sent.body))
    reader.finish()
    assert list(reader.roots or ()) == [cid]
    assert sum(block.cid.codec != DAG_PB for block in blocks) == leaves
    assert sent.headers["content-type"] == "application/vnd.ipld.car; version=1; order=dfs; dups=n"
    if leaves:
        assert b"".join(block.data for block in blocks if block.cid.codec != DAG_PB) == BIG


async def test_a_car_of_some_bytes_and_one_of_a_path(env: GatewayEnv) -> None:
    root = await env.folder({"big": BIG})
    sent = await env.get(f"/ipfs/{root}/big?entity-bytes=0:10", accept="application/vnd.ipld.car")
    blocks = list(car.CarReader().feed(sent.body))
    assert blocks[0].cid == root
    assert len(blocks) == 3
    assert blocks[2].data == BIG[: len(blocks[2].data)]


async def test_only_what_is_cached_if_that_is_wanted(env: GatewayEnv) -> None:
    cid = await env.file(b"hello")
    there = await env.get(f"/ipfs/{cid}", cache_control="only-if-cached")
    gone = await env.get(f"/ipfs/{Cid.for_block(DAG_PB, b'nowhere')}", cache_control="No-Store, Only-If-Cached")
    assert (there.status, gone.status) == (200, 412)


# Bytes that are not what they should be


async def test_damaged_content_is_never_served(env: GatewayEnv) -> None:
    pack, trees = await env.storage.keep(BIG, network=ContentNetwork.PUBLIC)
    env.storage.damage(pack, 10)
    sent = await env.get(f"/ipfs/{trees[0].cid}")
    assert sent.status == 500
    assert BIG[:10] not in sent.body
    assert "etag" not in sent.headers


async def test_an_answer_breaks_off_where_content_is_damaged(env: GatewayEnv) -> None:
    pack, trees = await env.storage.keep(BIG, network=ContentNetwork.PUBLIC)
    env.storage.damage(pack, -1)
    with pytest.raises(ResponseAborted) as broken:
        await env.get(f"/ipfs/{trees[0].cid}")
    assert isinstance(broken.value.__cause__, ContentDamaged)


# Manners


async def test_pages_of_other_origins_may_ask(env: GatewayEnv) -> None:
    sent = await env.get("/ipfs/x", method="OPTIONS", origin="https://a.example", access_control_request_method="GET")
    assert sent.status == 204
    assert sent.headers["access-control-allow-origin"] == "*"
    assert sent.headers["access-control-allow-methods"] == "GET, HEAD, OPTIONS"
    assert "range" in sent.headers["access-control-allow-headers"].lower()


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
async def test_nothing_can_be_changed_here(env: GatewayEnv, method: str) -> None:
    sent = await env.get("/ipfs/x", method=method)
    assert (sent.status, sent.headers["allow"]) == (405, "GET, HEAD, OPTIONS")


@pytest.mark.parametrize("path", ["/", "/ipfs", "/files"])
async def test_the_root_path_says_where_content_is(env: GatewayEnv, path: str) -> None:
    sent = await env.get(path)
    assert (sent.status, sent.headers["content-type"]) == (404, "text/plain; charset=utf-8")
    assert sent.body.startswith(b"ERR_ID:00004 - ")
    assert b"/ipfs/{cid}" in sent.body


async def test_nothing_else_is_served(env: GatewayEnv) -> None:
    for path in ("/x402/y", "/x402//cid", "/v3/files", "/v0/agents", "/metrics"):
        assert (await env.get(path)).status == 404
    cid = await env.file(b"hello")
    sent = await env.get(f"/ipfs/{cid}", "api")
    assert sent.status == 404


async def test_large_content_comes_whole(env: GatewayEnv) -> None:
    sent = await env.get(f"/ipfs/{await env.file(BIG)}")
    assert hashlib.sha256(sent.body).digest() == hashlib.sha256(BIG).digest()
    assert max(len(message.get("body", b"")) for message in sent.messages) <= 1024 * 1024


@pytest.mark.parametrize(
    ("data", "name", "mime"),
    [
        (b"<h1>Hello</h1>", "", "text/html; charset=utf-8"),
        (b"\n <!DOCTYPE html><p>", "", "text/html; charset=utf-8"),
        (b"<h1>Hello</h1>", "a.txt", "text/plain; charset=utf-8"),
        (b'<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg"/>', "", "image/svg+xml"),
        (b"<svg/>", "", "text/plain; charset=utf-8"),
        (b'{"a": 1}', "", "application/json"),
        (b"a < b", "", "text/plain; charset=utf-8"),
        (b"", "", "text/plain; charset=utf-8"),
        (b"\0\1\2", "", "application/octet-stream"),
        (b"body{}", "a.css", "text/css; charset=utf-8"),
        (b"%PDF-1.4\n", "", "application/pdf"),
    ],
)
async def test_the_type_is_found_by_content_and_name(env: GatewayEnv, data: bytes, name: str, mime: str) -> None:
    sent = await env.get(f"/ipfs/{await env.file(data)}?filename={name}")
    assert sent.headers["content-type"] == mime
    assert ("content-security-policy" in sent.headers) == mime.startswith(("text/html", "image/svg"))
