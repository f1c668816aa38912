"""A server whose blobs are in a bucket: every upload and download works, interrupted uploads delete their parts."""

import asyncio
import hashlib
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2 as httpx
import pytest

from tests.conformance import s3_server
from tests.conformance.s3_server import s3_address
from tests.support.server import RunningServer, running

__all__ = ["s3_address"]
BIG = hashlib.shake_128(b"bucket").digest(20_000_001)
HEAD = b'--edge\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n\r\n'


@dataclass
class Bucket:
    """The bucket as another client of the service sees it."""

    name: str
    service: Any

    def unfinished(self) -> int:
        return len(self.service.list_multipart_uploads(Bucket=self.name).get("Uploads", []))

    def objects(self) -> int:
        return self.service.list_objects_v2(Bucket=self.name)["KeyCount"]


@pytest.fixture
def bucket(s3_address: str) -> Bucket:
    return Bucket(f"server-{uuid.uuid4().hex}", s3_server.create_client(s3_address))


@pytest.fixture
async def server(
    tmp_path: Path, s3_address: str, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[RunningServer]:
    address = s3_server.use_bucket(monkeypatch, s3_address, bucket.name)
    async with running(tmp_path / "data", ROOST_BLOBS=address) as server:
        yield server


@pytest.fixture
def api(server: RunningServer) -> httpx.AsyncClient:
    return server.client(server.key(), "uploads.localhost")


async def test_in_and_out(server: RunningServer, api: httpx.AsyncClient, bucket: Bucket) -> None:
    rows = (await server.client(server.key(), "api.localhost").get("/v3/gateways")).json()["data"]["rows"]
    visitor = server.client(None, f"{rows[0]['domain']}.gateways.localhost")
    cid = (await api.post("/v3/files", files={"file": ("a", BIG)}, data={"network": "public"})).json()["data"]["cid"]
    assert (await visitor.get(f"/ipfs/{cid}")).content == BIG
    part = await visitor.get(f"/ipfs/{cid}", headers={"Range": "bytes=9000000-9000009"})
    assert part.content == BIG[9_000_000:9_000_010]
    files = [("file", ("d/a", b"a")), ("file", ("d/b", BIG[:100]))]
    folder = (await api.post("/v3/files", files=files, data={"network": "public"})).json()["data"]["cid"]
    assert (await visitor.get(f"/ipfs/{folder}/b")).content == BIG[:100]
    place = urlsplit((await api.post("/v3/files", headers={"Upload-Length": "10000000"})).headers["Location"]).path
    said = {"Content-Type": "application/offset+octet-stream"}
    for at in (0, 5_000_000):
        last = await api.patch(place, headers={**said, "Upload-Offset": str(at)}, content=BIG[at : at + 5_000_000])
        assert last.status_code == 204
    assert last.headers["upload-cid"]
    assert (bucket.objects(), bucket.unfinished()) == (3, 0)


async def test_an_aborted_upload_leaves_no_parts(server: RunningServer, bucket: Bucket) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", server.port)
    head = (
        f"POST /v3/files HTTP/1.1\r\nHost: uploads.localhost\r\nAuthorization: Bearer {server.key()}\r\n"
        f"Content-Length: {len(BIG) + 1000}\r\nContent-Type: multipart/form-data; boundary=edge\r\n\r\n"
    )
    writer.write(head.encode() + HEAD + BIG)
    await writer.drain()
    async with asyncio.timeout(20):
        while not await asyncio.to_thread(bucket.unfinished):
            await asyncio.sleep(0.02)
        writer.transport.abort()
        while await asyncio.to_thread(bucket.unfinished):
            await asyncio.sleep(0.02)
    assert bucket.objects() == 0
