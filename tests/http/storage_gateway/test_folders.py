"""Folders on a gateway: those of many thousand entries, those with strange names, and what a browser makes of both."""

import re

import pytest

from roost.http.storage_gateway import directory_listing
from roost.storage.content.model import ContentNetwork, ContentScope
from roost.storage.content.unixfs import car
from roost.storage.content.unixfs.dagpb import PBLink, UnixfsKind
from tests.http.storage_gateway import crafted_content
from tests.http.storage_gateway.gateway_env import BIG, NAMES, GatewayEnv

MANY = {f"file {number:05}.txt": b"same" for number in range(10_000)}


async def test_a_folder_of_ten_thousand_entries(env: GatewayEnv) -> None:
    root = await env.folder({**MANY, "last": b"other"})
    stat = await env.storage.reader.stat(ContentScope(ContentNetwork.PUBLIC), root)
    assert stat.kind is UnixfsKind.SHARD
    sent = await env.get(f"/ipfs/{root}/")
    assert sent.status == 200
    assert len(re.findall(b"<tr>", sent.body)) == directory_listing.ENTRY_LIMIT
    assert b"The first 5,000 entries are shown." in sent.body
    assert sent.headers["content-length"] == str(len(sent.body))
    assert len(sent.body) < 2_000_000
    assert sent.body == (await env.get(f"/ipfs/{root}/")).body
    inside = await env.get(f"/ipfs/{root}/file%2009999.txt")
    assert (inside.body, len(inside.headers["x-ipfs-roots"].split(","))) == (b"same", 2)  # shards are no segments
    assert (await env.get(f"/ipfs/{root}/no%20such")).status == 404
    reader = car.CarReader()
    proof = list(reader.feed((await env.get(f"/ipfs/{root}/last?format=car&dag-scope=block")).body))
    assert (proof[0].cid, proof[-1].data) == (root, b"other")


async def test_an_index_is_found_among_many(env: GatewayEnv) -> None:
    many = {f"{number}{'-' * 100}": b"same" for number in range(2000)}
    root = await env.folder({**many, "index.html": b"<!doctype html><p>hi"})
    assert (await env.storage.reader.stat(ContentScope(ContentNetwork.PUBLIC), root)).kind is UnixfsKind.SHARD
    sent = await env.get("/", f"{root}.ipfs.mine-gate")
    assert (sent.status, sent.body) == (200, b"<!doctype html><p>hi")


async def test_a_page_of_a_hostile_folder_leads_nowhere_else(env: GatewayEnv) -> None:
    names = [
        "..",
        "../..",
        "//evil.example",
        "\\evil.example",
        "javascript:alert(1)",
        "a\nb",
        '"><script>',
        "\0",
        "x" * 5000,
    ]
    root = await crafted_content.folder(env, [PBLink(crafted_content.LEAF, name, 1) for name in names])
    sent = await env.get(f"/ipfs/{root}/")
    page = sent.body.decode()
    assert "<script" not in page
    assert "script-src" not in sent.headers["content-security-policy"]
    assert "default-src 'none'" in sent.headers["content-security-policy"]
    targets = re.findall(r'href="([^"]*)"', page)
    assert len(targets) == len(names)
    assert all(re.fullmatch(r"\./[A-Za-z0-9_.~%-]*", target) for target in targets)


async def test_a_page_shows_where_it_is(env: GatewayEnv) -> None:
    _, root = await env.nested({"sub <b>": {"a": b"12345"}, "": {}})
    top = (await env.get(f"/ipfs/{root}/")).body.decode()
    below = (await env.get(f"/ipfs/{root}/sub%20%3Cb%3E/")).body.decode()
    assert 'href="../"' not in top
    assert 'href="../"' in below
    assert f"<h1>{root}/sub &lt;b&gt;</h1>" in below
    assert '<a href="./a">a</a></td><td class="n">5<' in below


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_the_slash_is_added_to_the_address_as_it_was_sent(env: GatewayEnv, method: str) -> None:
    _, root = await env.nested({"größe 100%": NAMES, "": {}})
    encoded = f"/ipfs/{root}/gr%C3%B6%C3%9Fe%20100%25"
    moved = await env.get(f"{encoded}?a=b%20c&d", method=method)
    assert (moved.status, moved.headers["location"]) == (301, f"{encoded}/?a=b%20c&d")
    assert moved.headers["x-ipfs-roots"].startswith(f"{root},")
    own = await env.get("/gr%C3%B6%C3%9Fe%20100%25", f"{root}.ipfs.mine-gate", method=method)
    assert own.headers["location"] == "/gr%C3%B6%C3%9Fe%20100%25/"


async def test_no_address_leads_to_another_host(env: GatewayEnv) -> None:
    root = await crafted_content.nested_folders(env, 2, ["\\evil.example"])
    own = f"{root}.ipfs.mine-gate"
    sent = await env.get("/%5Cevil.example", own)
    assert (sent.status, sent.headers["location"]) == (301, "/%5Cevil.example/")
    assert (await env.get("/\\evil.example", own)).headers["location"] == "/%5Cevil.example/"
    assert (await env.get("//evil.example", own)).status == 400


@pytest.mark.parametrize("name", ["page.html", "plain.txt", ""])
async def test_no_service_worker_of_all_that_is_here(env: GatewayEnv, name: str) -> None:
    root = await env.folder({**NAMES, "index.html": b"1"})
    sent = await env.get(f"/ipfs/{root}/{name}", service_worker="script")
    assert (sent.status, sent.body[:12]) == (400, b"ERR_ID:00004")
    assert (await env.get(f"/{name}", f"{root}.ipfs.mine-gate", service_worker="script")).status == 200


async def test_an_origin_of_its_own_is_that_of_one_cid(env: GatewayEnv) -> None:
    cid = await env.folder({"big": BIG, "ipfs": b"a file"})
    own = f"{cid}.ipfs.mine-gate"
    part = await env.get("/big", own, range="bytes=5-9")
    assert (part.status, part.body) == (206, BIG[5:10])
    assert part.headers["x-ipfs-path"] == f"/ipfs/{cid}/big"
    assert (await env.get("/ipfs", own)).body == b"a file"
    assert (await env.get(f"/ipfs/{cid}", own)).status == 404  # a name in it, and not another root
    assert (await env.get("/?format=car", own)).status == 200
    assert (await env.get("/", f"{str(cid).upper()}.ipfs.mine-gate")).status == 200  # names of hosts have no case
    assert (await env.get("/", "qmnoversion0.ipfs.mine-gate")).status == 400


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("filename=%00%0A", None),
        ("filename=///", None),
        ("filename=a%E2%80%AEtxt.exe", 'inline; filename="atxt.exe"'),
        ("filename=" + "n" * 400, f'inline; filename="{"n" * 255}"'),
        ("filename=a;b=c,d", 'inline; filename="a;b=c,d"'),
        ("filename=%ED%A0%80x", None),
        ("filename=&download=true", "attachment"),
        ("download=true", "attachment"),
        ("download=TRUE", None),
        ("download=false&filename=a", 'inline; filename="a"'),
        ("filename=a&filename=b", 'inline; filename="a"'),
    ],
)
async def test_hostile_names_of_downloads(env: GatewayEnv, query: str, expected: str | None) -> None:
    cid = await env.file(b"hello")
    sent = await env.get(f"/ipfs/{cid}?{query}")
    told = sent.headers.get("content-disposition")
    assert sent.status == 200
    assert told is None or told.isprintable()
    if expected is not None:
        assert told is not None
        assert told.startswith(expected)
