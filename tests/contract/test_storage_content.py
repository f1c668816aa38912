"""Content on a storage gateway, over real sockets: uploaded at one address, fetched from another."""

import asyncio
import hashlib
import io
import tarfile
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from PIL import Image

from tests.support.server import RunningServer, running

BIG = hashlib.shake_128(b"wire").digest(6_000_001)


async def upload(server: RunningServer, token: str, data: bytes, name: str = "a.bin", network: str = "public") -> str:
    client = server.client(token, "uploads.localhost")
    answer = await client.post("/v3/files", data={"network": network}, files={"file": (name, data)})
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]["cid"]


async def gateway_of(server: RunningServer, token: str) -> tuple[str, httpx.AsyncClient]:
    rows: Any = (await server.client(token, "api.localhost").get("/v3/gateways")).json()["data"]["rows"]
    name = rows[0]["domain"]
    return name, server.client(None, f"{name}.gateways.localhost")


async def test_uploaded_content_is_served(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        token = server.key()
        name, visitor = await gateway_of(server, token)
        cid = await upload(server, token, BIG)

        whole = await visitor.get(f"/ipfs/{cid}")
        assert (whole.status_code, whole.content) == (200, BIG)
        assert whole.headers["x-content-type-options"] == "nosniff"
        assert whole.headers["x-request-id"]
        part = await visitor.get(f"/ipfs/{cid}", headers={"Range": "bytes=-3"})
        assert (part.status_code, part.content) == (206, BIG[-3:])
        head = await visitor.head(f"/ipfs/{cid}")
        assert (head.headers["content-length"], head.content) == (str(len(BIG)), b"")
        again = await visitor.get(f"/ipfs/{cid}", headers={"If-None-Match": whole.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")

        own = server.client(None, f"{cid}.ipfs.{name}.gateways.localhost")
        assert (await own.get("/")).content == BIG
        other = server.key("other")
        _, elsewhere = await gateway_of(server, other)
        assert (await elsewhere.get(f"/ipfs/{cid}")).status_code == 404

        private = await upload(server, token, b"private", network="private")
        for target in (f"/ipfs/{private}", f"/files/{private}", f"/ipfs/{private}?format=car"):
            answer = await visitor.get(target)
            assert answer.status_code in {403, 404}
            assert b"private" not in answer.content

        out = io.BytesIO()
        Image.new("RGB", (60, 40)).save(out, "PNG")
        picture = await upload(server, token, out.getvalue(), "a.png")
        small = await visitor.get(f"/ipfs/{picture}?img-width=30")
        assert Image.open(io.BytesIO(small.content)).size == (30, 20)
        assert (await visitor.post(f"/ipfs/{cid}", content=b"x")).status_code == 405


async def test_a_single_page_site(tmp_path: Path) -> None:
    files = {
        "_redirects": b"/old/:id /new/:id\n/app/* /index.html 200",
        "index.html": b"<p>app",
        "404.html": b"<p>none",
    }
    async with running(tmp_path) as server:
        token = server.key()
        name, shared = await gateway_of(server, token)
        form = [("file", (f"site/{path}", data)) for path, data in files.items()]
        client = server.client(token, "uploads.localhost")
        cid = (await client.post("/v3/files", data={"network": "public"}, files=form)).json()["data"]["cid"]
        own = server.client(None, f"{cid}.ipfs.{name}.gateways.localhost")
        page, raw = {"Accept": "text/html"}, {"Accept": "application/vnd.ipld.raw"}
        for _ in range(2):  # the second is answered from memory, which distinguishes paths and what clients accept
            for path in ("/app/a", "/app/b/c"):
                answer = await own.get(path, headers=page)
                assert (answer.status_code, answer.content) == (200, b"<p>app")
                assert (await own.get(path, headers=raw)).status_code == 404
                assert (await own.head(path)).headers["content-length"] == "6"
            missing = await own.get("/none", headers=page)
            assert (missing.status_code, missing.content) == (404, b"<p>none")
            assert (await own.get("/none", headers={"Accept": "*/*"})).content[:12] == b"ERR_ID:00006"
            moved = await own.get("/old/7%0D%0A", headers=page)
            assert (moved.status_code, moved.headers["location"]) == (301, "/new/7%0D%0A")
            assert (await shared.get(f"/ipfs/{cid}/app/a", headers=page)).status_code == 404


async def test_headers_for_programs_and_pages_are_sent(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        token = server.key()
        _, visitor = await gateway_of(server, token)
        client = server.client(token, "uploads.localhost")
        form = [("file", (f"folder/größe {name}", data)) for name, data in (("a.bin", BIG), ("b.txt", b"text"))]
        cid = (await client.post("/v3/files", data={"network": "public"}, files=form)).json()["data"]["cid"]

        for query in ("", "?format=raw", "?format=car", "?format=tar"):
            answer = await visitor.get(f"/ipfs/{cid}/{query}", headers={"Origin": "https://page.example"})
            assert answer.status_code == 200
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["access-control-allow-origin"] == "*"
            exposed = answer.headers["access-control-expose-headers"].lower().split(", ")
            assert {"content-range", "content-length", "etag", "x-ipfs-path", "x-ipfs-roots"} <= set(exposed)
            head = await visitor.head(f"/ipfs/{cid}/{query}")
            assert (head.status_code, head.content) == (200, b"")
            assert head.headers.get("content-length") == answer.headers.get("content-length")
        asked = {
            "Origin": "https://page.example",
            "Access-Control-Request-Method": "GET",
            "Access-Control-Request-Headers": "range, if-none-match, x-pinata-gateway-token",
        }
        allowed = await visitor.options(f"/ipfs/{cid}", headers=asked)
        assert allowed.status_code == 204
        names = {name.strip().lower() for name in allowed.headers["access-control-allow-headers"].split(",")}
        assert set(asked["Access-Control-Request-Headers"].split(", ")) <= names
        assert "access-control-allow-credentials" not in allowed.headers

        tar = await visitor.get(f"/ipfs/{cid}?format=tar")
        with tarfile.open(fileobj=io.BytesIO(tar.content)) as found:
            assert found.getnames() == [cid, f"{cid}/größe a.bin", f"{cid}/größe b.txt"]
        parts = await visitor.get(f"/ipfs/{cid}/größe a.bin", headers={"Range": "bytes=0-4,-5"})
        assert parts.status_code == 206
        assert BIG[:5] in parts.content
        assert BIG[-5:] in parts.content


async def test_a_client_sees_that_an_answer_broke_off(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        token = server.key()
        _, visitor = await gateway_of(server, token)
        cid = await upload(server, token, BIG)
        (pack,) = [path for path in (tmp_path / "blobs").rglob("*") if path.is_file() and path.stat().st_size > 10**6]
        data = bytearray(pack.read_bytes())
        data[-1] ^= 1
        pack.chmod(0o600)
        pack.write_bytes(data)
        with pytest.raises(httpx.RemoteProtocolError):
            await visitor.get(f"/ipfs/{cid}")


async def test_who_leaves_is_not_sent_to_any_more(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        token = server.key()
        name, visitor = await gateway_of(server, token)
        cid = await upload(server, token, BIG)
        before = len(asyncio.all_tasks())
        for _ in range(5):
            _, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(f"GET /ipfs/{cid} HTTP/1.1\r\nHost: {name}.gateways.localhost\r\n\r\n".encode())
            await writer.drain()
            writer.transport.abort()
        async with asyncio.timeout(20):
            while len(asyncio.all_tasks()) > before:
                await asyncio.sleep(0.02)
        assert (await visitor.get(f"/ipfs/{cid}")).content == BIG


@pytest.mark.parametrize(("proxies", "status"), [("127.0.0.0/8", 200), ("10.0.0.0/8", 401), ("", 401)])
async def test_an_address_is_believed_from_a_proxy_that_is_trusted(tmp_path: Path, proxies: str, status: int) -> None:
    async with running(tmp_path, ROOST_TRUSTED_PROXIES=proxies) as server:
        token = server.key()
        name, visitor = await gateway_of(server, token)
        cid = await upload(server, token, b"for those who are let in")
        api = server.client(token, "api.localhost")
        rows: Any = (await api.get("/v3/gateways")).json()["data"]["rows"]
        [mine] = [row["id"] for row in rows if row["domain"] == name]
        allowed = await api.post(f"/v3/gateways/{mine}/ips", json={"ip": "203.0.113.0/24"})
        assert allowed.status_code == 200, allowed.text

        said = {"X-Forwarded-For": "198.51.100.1, 203.0.113.7"}
        assert (await visitor.get(f"/ipfs/{cid}", headers=said)).status_code == status
        lied = {"X-Forwarded-For": "203.0.113.7, 198.51.100.1"}
        assert (await visitor.get(f"/ipfs/{cid}", headers=lied)).status_code == 401
