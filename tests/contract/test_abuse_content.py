"""Forbidden access to content: invalid networks and CIDs, private content at public addresses, damaged blocks,
pages with scripts, signatures of another account.
"""

import hashlib
import itertools
from pathlib import Path

import httpx2 as httpx
import pytest

from roost.storage.content.model import ContentNetwork
from roost.storage.content.unixfs import dagpb
from roost.storage.content.unixfs.cid import DAG_PB, IDENTITY, RAW, Cid
from roost.storage.content.unixfs.dagpb import PBLink, UnixfsData, UnixfsKind
from roost.storage.content.unixfs.profile import V0
from roost.storage.files.signatures.model import format_milliseconds
from tests.contract.storage import keep
from tests.contract.test_storage_content import gateway_of
from tests.storage.cars import encode_car
from tests.storage.files.signatures.test_ethereum import account, sign_typed
from tests.support.server import RunningServer, running

SECRET = hashlib.shake_128(b"a secret").hexdigest(400_000).encode()
FORMS = (
    "",
    "/",
    "?format=raw",
    "?format=car",
    "?format=car&car-dups=y",
    "?format=tar",
    "?img-width=5",
    "?download=true",
)
HEADERS = (
    {},
    {"Range": "bytes=0-9"},
    {"Range": "bytes=0-1,5-9"},
    {"Accept": "application/vnd.ipld.raw"},
    {"Accept": "application/vnd.ipld.car"},
    {"Accept": "application/x-tar"},
    {"If-Match": "*"},
    {"If-None-Match": "*"},
    {"Authorization": "Bearer x"},
)


@pytest.fixture
def api(server: RunningServer) -> httpx.AsyncClient:
    return server.client(server.key("content"), "api.localhost")


# Invalid networks and CIDs

NETWORKS = ["Public", "PRIVATE", "prod", "all", "public%00", "public,private", "null", "0", "%E2%80%8Bpublic"]


@pytest.mark.parametrize("network", NETWORKS)
async def test_networks_that_are_none(server: RunningServer, api: httpx.AsyncClient, network: str) -> None:
    file = await keep(server, "content", ContentNetwork.PUBLIC, b"there")
    for method, path in (
        ("GET", f"/v3/files/{network}"),
        ("GET", f"/v3/files/{network}/{file.id}"),
        ("DELETE", f"/v3/files/{network}/{file.id}"),
        ("GET", f"/v3/files/{network}/swap/{file.cid}"),
        ("GET", f"/v3/files/{network}/signature/{file.cid}"),
        ("GET", f"/v3/groups/{network}"),
        ("POST", f"/v3/groups/{network}"),
    ):
        answer = await api.request(method, path, json={"name": "g"} if method == "POST" else None)
        assert answer.status_code in {400, 404, 405}, (path, answer.text)
    uploaded = await api.post("/v3/files", data={"network": network}, files={"file": b"x"})
    assert uploaded.status_code == 400
    assert (await api.post("/v3/files", json={"network": network, "expires": 5})).status_code == 400
    assert (await api.get(f"/v3/files/public/{file.id}")).status_code == 200


GOOD = Cid.for_block(RAW, b"there")
CIDS = {
    "empty": "%20",
    "word": "nonsense",
    "cut": str(GOOD)[:-1],
    "longer": f"{GOOD}a",
    "mixed": str(GOOD)[:20] + str(GOOD)[20:].upper(),
    "no alphabet": str(GOOD)[1:],
    "version 0 in small letters": str(Cid.for_block(DAG_PB, b"there", 0)).lower(),
    "version 0 with an alphabet": f"z{Cid.for_block(DAG_PB, b'there', 0)}",
    "version 2": "b" + "aidq" + str(GOOD)[5:],
    "identity": str(Cid(1, RAW, IDENTITY, b"there")),
    "another hash": str(Cid(1, RAW, 0x13, bytes(64))),
    "short digest": str(Cid(1, RAW, 0x12, bytes(20))),
    "long": "b" + "a" * 10_000,
    "path": "..%2f..%2f",
    "text": "%E2%98%83" * 10,
}


@pytest.mark.parametrize("kind", CIDS)
async def test_cids_that_are_none(server: RunningServer, api: httpx.AsyncClient, kind: str) -> None:
    cid, (_, visitor) = CIDS[kind], await gateway_of(server, server.key("content"))
    await keep(server, "content", ContentNetwork.PUBLIC, b"there")
    for path in (f"/v3/files/public/swap/{cid}", f"/v3/files/private/signature/{cid}", f"/v3/ipfs/signature/{cid}"):
        assert (await api.get(path)).status_code in {400, 404}, path
    assert (await api.delete(f"/pinning/unpin/{cid}")).status_code in {400, 404}
    answer = await api.put(f"/v3/files/public/swap/{GOOD}", json={"swap_cid": cid})
    assert answer.status_code in {400, 404}, answer.text
    listed = await api.get(f"/v3/files/public?cid={cid}")
    assert listed.status_code == 400 or listed.json()["data"]["files"] == []
    answers = {200, 415} if kind == "identity" else {400, 404}  # its content is in the CID
    for form in FORMS:
        assert (await visitor.get(f"/ipfs/{cid}{form}")).status_code in answers, form
        assert (await visitor.get(f"/files/{cid}{form}")).status_code in {400, 403, 404}, form


# Private content


@pytest.fixture
async def private_file(server: RunningServer) -> tuple[str, str, str]:
    """Return a private file of three blocks, the CID of one of them, and the file's CID of version 0."""
    file = await keep(server, "content", ContentNetwork.PRIVATE, SECRET)
    old = await keep(server, "content", ContentNetwork.PRIVATE, SECRET, V0)
    return file.cid, str(Cid.for_block(RAW, SECRET[:262_144])), old.cid


async def test_private_content_has_no_public_address(server: RunningServer, private_file: tuple[str, str, str]) -> None:
    """Responses are those of missing content: by path, subdomain, format or range, also for the owner."""
    name, visitor = await gateway_of(server, server.key("content"))
    _, others = await gateway_of(server, server.key("another"))
    nowhere = str(Cid.for_block(DAG_PB, b"nowhere"))
    for form, headers, method in itertools.product(FORMS, HEADERS, ("GET", "HEAD")):
        absent = await visitor.request(method, f"/ipfs/{nowhere}{form}", headers=headers)
        for client, cid in (
            (visitor, private_file[0]),
            (visitor, private_file[1]),
            (visitor, private_file[2]),
            (others, private_file[0]),
        ):
            seen = await client.request(method, f"/ipfs/{cid}{form}", headers=headers)
            assert seen.status_code == 404, (form, headers, seen.status_code)
            assert (seen.text, comparable_headers(seen)) == (absent.text, comparable_headers(absent))
    for cid in private_file:
        unsigned = await visitor.get(f"/files/{cid}")
        assert (unsigned.status_code, SECRET[:20] in unsigned.content) == (403, False)
    own = server.client(None, f"{private_file[0]}.ipfs.{name}.gateways.localhost")
    for form in ("/", "/?format=raw", "/?format=tar"):
        assert (await own.get(form)).status_code == 404


def comparable_headers(answer: httpx.Response) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name not in {"x-request-id", "date"}}


async def test_nothing_public_can_be_made_of_what_one_does_not_have(
    server: RunningServer, api: httpx.AsyncClient, private_file: tuple[str, str, str]
) -> None:
    """A folder or CAR that links a private CID or block does not make it public."""
    villain = server.client(server.key("villain"), "uploads.localhost")
    for cid in private_file:
        node = dagpb.encode_node([PBLink(Cid.parse(cid), "mine", 5)], UnixfsData(UnixfsKind.DIRECTORY))
        root = Cid.for_block(DAG_PB, node)
        for roots, blocks in (([root], [(root, node)]), ([Cid.parse(cid)], [])):
            content = encode_car(roots, blocks)
            form = {"network": "public", "car": "true"}
            answer = await villain.post("/v3/files", data=form, files={"file": ("a.car", content)})
            assert answer.status_code == 400, answer.text
        for method, path, body in (
            ("PUT", f"/v3/files/public/swap/{cid}", {"swap_cid": str(GOOD)}),
            (
                "POST",
                f"/v3/files/private/signature/{cid}",
                {"signature": "0x" + "11" * 65, "address": account().address},
            ),
            (
                "POST",
                "/v3/files/private/download_link",
                {"url": f"http://x.gateways.localhost/files/{cid}", "expires": 9},
            ),
        ):
            answer = await villain.request(method, path, json=body)
            assert SECRET[:20] not in answer.content
    name, visitor = await gateway_of(server, server.key("content"))
    link = {"url": f"http://{name}.gateways.localhost:{server.port}/files/{private_file[0]}", "expires": 60}
    forged = (await villain.post("/v3/files/private/download_link", json=link)).json()["data"]
    assert (
        await visitor.get(forged.partition(f":{server.port}")[2])
    ).status_code == 403  # their key has no effect there
    mine = (await api.post("/v3/files/private/download_link", json=link)).json()["data"]
    assert (await visitor.get(mine.partition(f":{server.port}")[2])).content == SECRET


async def test_the_same_bytes_of_two_tenants_tell_neither_of_the_other(
    server: RunningServer, api: httpx.AsyncClient, private_file: tuple[str, str, str]
) -> None:
    other = server.client(server.key("same"), "uploads.localhost")
    sent = (await other.post("/v3/files", data={"network": "private"}, files={"file": ("n", SECRET)})).json()["data"]
    assert (sent["cid"], sent["is_duplicate"]) == (private_file[0], False)
    assert (await other.delete(f"/v3/files/private/{sent['id']}")).status_code == 200
    name, visitor = await gateway_of(server, server.key("content"))
    link = {"url": f"http://{name}.gateways.localhost:{server.port}/files/{private_file[0]}", "expires": 60}
    mine = (await api.post("/v3/files/private/download_link", json=link)).json()["data"]
    assert (await visitor.get(mine.partition(f":{server.port}")[2])).content == SECRET


# Damage


async def test_damaged_blocks_never_go_out(tmp_path: Path) -> None:
    """No format or range serves them; the other blocks are served, and a scrub reports the damage."""
    content = hashlib.shake_128(b"to be damaged").digest(1_000_001)
    async with running(tmp_path) as server:
        key = server.key()
        file = await keep(server, "acme", ContentNetwork.PUBLIC, content)
        (pack,) = [path for path in (tmp_path / "blobs").rglob("*") if path.is_file()]
        data = bytearray(pack.read_bytes())
        data[data.index(content[:100]) + 300_000] ^= 1
        pack.chmod(0o600)
        pack.write_bytes(data)
        name, visitor = await gateway_of(server, key)
        own = server.client(None, f"{file.cid}.ipfs.{name}.gateways.localhost")
        for client, target in ((visitor, f"/ipfs/{file.cid}"), (own, "/")):
            for form in ("", "?format=car", "?format=car&dag-scope=entity", "?format=tar", "?download=true"):
                assert await _fails(client, f"{target}{form}", content), form
            for asked in ("bytes=299999-300001", "bytes=0-1,300000-300001", "bytes=262144-"):
                assert await _fails(client, target, content, asked), asked
        leaf = Cid.for_block(RAW, content[262_144 : 2 * 262_144])
        assert (await visitor.get(f"/ipfs/{leaf}?format=raw")).status_code == 500
        part = await visitor.get(f"/ipfs/{file.cid}", headers={"Range": "bytes=600000-600009"})
        assert (part.status_code, part.content) == (206, content[600_000:600_010])
        assert (await visitor.get(f"/ipfs/{file.cid}", headers={"Range": "bytes=0-9"})).content == content[:10]
        again = await server.client(key, "uploads.localhost").post(
            "/v3/files", data={"network": "public"}, files={"file": ("n", content)}
        )
        assert again.status_code == 200
        assert (await visitor.get(f"/ipfs/{file.cid}")).content == content  # the repeated upload is served


async def _fails(client: httpx.AsyncClient, target: str, content: bytes, asked: str | None = None) -> bool:
    """Return whether a response is 500 or interrupted, with correct bytes until then."""
    got = bytearray()
    try:
        async with client.stream("GET", target, headers={"Range": asked} if asked else {}) as answer:
            if answer.status_code == 500:
                return True
            async for piece in answer.aiter_bytes():
                got += piece
    except httpx.RemoteProtocolError:
        wrong = bytearray(content)
        wrong[300_000] ^= 1
        return bytes(wrong[299_990:300_010]) not in got
    return False


# Pages

PAGES = {
    "page.html": b"<!doctype html><script>alert(document.cookie)</script>",
    "image.svg": b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>',
    "page.xhtml": b'<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><script>alert(1)</script></html>',
    "style.xsl": b'<?xml version="1.0"?><xsl:stylesheet xmlns:xsl="http://www.w3.org/1999/XSL/Transform"/>',
    "noname": b"<script>alert(1)</script>",
    "mail.mhtml": b"MIME-Version: 1.0\r\nContent-Type: text/html\r\n\r\n<script>alert(1)</script>",
    "image.png": b"<html><script>alert(1)</script>",
}


@pytest.mark.parametrize("name", PAGES)
async def test_no_page_runs_on_a_shared_origin(server: RunningServer, api: httpx.AsyncClient, name: str) -> None:
    _, visitor = await gateway_of(server, server.key("content"))
    form = {"files": {"file": (name, PAGES[name])}, "data": {"network": "public"}}
    cid = (await api.post("/v3/files", **form)).json()["data"]["cid"]
    for query in (
        "",
        f"?filename={name}",
        f"?filename={name}&download=false",
        "?filename=a.html",
        "?img-onerror=redirect",
    ):
        mime = (await visitor.get(f"/ipfs/{cid}{query}")).headers["content-type"].partition(";")[0]
        for headers in ({}, {"Range": "bytes=0-20"}, {"Range": "bytes=0-5,7-9"}):
            answer = await visitor.get(f"/ipfs/{cid}{query}", headers=headers)
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert "set-cookie" not in answer.headers
            assert "access-control-allow-credentials" not in answer.headers
            if mime not in {"text/plain", "application/octet-stream", "image/png"}:
                assert answer.headers["content-security-policy"] == "sandbox", mime
                assert answer.headers["content-disposition"].startswith("attachment"), mime


# Signatures


async def test_signatures_that_sign_nothing_here(server: RunningServer, api: httpx.AsyncClient) -> None:
    file = await keep(server, "content", ContentNetwork.PRIVATE, b"to sign")
    other = await keep(server, "content", ContentNetwork.PRIVATE, b"to sign too")
    me, date = account().address, format_milliseconds(file.created_at)
    good = sign_typed(account(), file.cid, date)
    of_another = sign_typed(account(), other.cid, format_milliseconds(other.created_at))
    raw = bytes.fromhex(good.removeprefix("0x"))
    order = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
    high = raw[:32] + (order - int.from_bytes(raw[32:64], "big")).to_bytes(32, "big") + bytes([55 - raw[64]])
    path = f"/v3/files/private/signature/{file.cid}"
    for signature, address in (
        *((good[:-2], me), (good + "00", me), (good.removeprefix("0x")[:-1], me), ("0x" + "zz" * 65, me), ("", me)),
        *(("0x" + "00" * 65, me), (good[:-2] + "1d", me), (f"0x{high.hex()}", me), (of_another, me)),
        *((good, account(2).address), (good, "0x" + me[2:].swapcase()), (good, me[:-1]), (good, ""), (good, "0x")),
        (sign_typed(account(2), file.cid, date), me),
        (sign_typed(account(), file.cid, "2001-01-01T00:00:00.000Z"), me),
    ):
        answer = await api.post(path, json={"signature": signature, "address": address})
        assert answer.status_code == 400, (signature, address, answer.text)
    assert (await api.get(path)).status_code == 404
    reader = server.client(server.key("content", scopes=frozenset({"org:files:read"})), "api.localhost")
    assert (await reader.post(path, json={"signature": good, "address": me})).status_code == 403
    assert (await api.post(path, json={"signature": good, "address": me})).status_code == 200
    assert (await api.post(path, json={"signature": good, "address": me})).status_code == 409
    assert (await api.get(path)).json()["data"]["signature"] == good
