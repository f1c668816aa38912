"""Objects of a service of the S3 protocol: in parts when they are large, and nothing left of what ends early."""

import asyncio
import hashlib
import re
import tracemalloc
import uuid
from typing import Any

import pytest

from roost.drivers.blob.contract import BlobNotFound, BlobStoreFailed
from roost.drivers.blob.object_store import PART_BYTES, ObjectStore
from tests.conformance import s3_server
from tests.conformance.s3_server import s3_address

__all__ = ["s3_address"]
KEY = "ab" * 16
DATA = hashlib.shake_128(b"roost").digest(3 * PART_BYTES + 5)


@pytest.fixture
def bucket() -> str:
    return f"b-{uuid.uuid4().hex}"


@pytest.fixture
def objects(s3_address: str, bucket: str, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    return ObjectStore(s3_server.use_bucket(monkeypatch, s3_address, bucket))


@pytest.fixture
def service(s3_address: str, objects: ObjectStore) -> Any:
    return s3_server.create_client(s3_address)


async def put(objects: ObjectStore, data: bytes) -> None:
    async with await objects.create(KEY) as writer:
        for at in range(0, len(data), 1_000_000):
            await writer.write(data[at : at + 1_000_000])
        await writer.commit()


def unfinished(service: Any, bucket: str) -> list[Any]:
    return service.list_multipart_uploads(Bucket=bucket).get("Uploads", [])


@pytest.mark.parametrize("size", [PART_BYTES - 1, PART_BYTES, PART_BYTES + 1, len(DATA)])
async def test_large_objects_come_and_go_in_parts(objects: ObjectStore, size: int) -> None:
    await put(objects, DATA[:size])
    pieces = [piece async for piece in objects.stream(KEY, 3, size - 3, 262_144)]
    assert b"".join(pieces) == DATA[3:size]
    assert {len(piece) for piece in pieces[:-1]} == {262_144}


async def test_it_stands_under_the_prefix_by_its_key_alone(objects: ObjectStore, service: Any, bucket: str) -> None:
    await put(objects, b"x")
    service.put_object(Bucket=bucket, Key="some/prefix/notes.txt", Body=b"not ours")
    assert [blob.key async for blob in objects.list()] == [KEY]
    assert service.get_object(Bucket=bucket, Key=f"some/prefix/{KEY}")["Body"].read() == b"x"


async def test_nothing_is_left_of_what_is_given_up(objects: ObjectStore, service: Any, bucket: str) -> None:
    async with await objects.create(KEY) as writer:
        await writer.write(DATA)
        assert len(unfinished(service, bucket)) <= 1
    assert unfinished(service, bucket) == []
    assert [blob async for blob in objects.list()] == []


@pytest.mark.parametrize("committing", [False, True])
async def test_nothing_is_left_of_what_is_cut_off(
    objects: ObjectStore, service: Any, bucket: str, *, committing: bool
) -> None:
    reached = asyncio.Event()

    async def upload() -> None:
        async with await objects.create(KEY) as writer:
            await writer.write(DATA)
            reached.set()
            await (writer.commit() if committing else asyncio.Event().wait())

    task = asyncio.create_task(upload())
    await reached.wait()
    await asyncio.sleep(0)  # let the commit begin
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert unfinished(service, bucket) == []
    assert [blob async for blob in objects.list()] == []


async def test_a_taken_key_stays_as_it_is_also_for_parts(objects: ObjectStore, service: Any, bucket: str) -> None:
    await put(objects, b"first")
    with pytest.raises(BlobStoreFailed):
        await put(objects, DATA)
    assert await objects.read(KEY, 0, 5) == b"first"
    assert unfinished(service, bucket) == []


async def test_few_parts_are_held(objects: ObjectStore) -> None:
    tracemalloc.start()
    try:
        async with await objects.create(KEY) as writer:
            for _ in range(150):
                await writer.write(bytes(1024**2))
            await writer.commit()
        assert tracemalloc.get_traced_memory()[1] < 10 * PART_BYTES
    finally:
        tracemalloc.stop()


async def test_it_says_whether_the_backend_replaces(
    objects: ObjectStore, s3_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await objects.probe() is None
    lax = ObjectStore(s3_server.use_bucket(monkeypatch, s3_address, f"lax-{uuid.uuid4().hex}"))
    assert "replaces existing objects" in (await lax.probe() or "")
    assert [blob async for blob in lax.list()] == []


async def test_a_bucket_that_is_not_there(objects: ObjectStore) -> None:
    other = ObjectStore("s3://there-is-none")
    with pytest.raises(BlobStoreFailed, match=r"cannot be stored in s3://there-is-none: "):
        await other.probe()
    with pytest.raises(BlobNotFound):
        await other.read(KEY, 0, 1)
    with pytest.raises(BlobStoreFailed, match="not available"):
        await put(other, DATA)


async def test_an_endpoint_that_is_none(objects: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for endpoint in ("", "nonsense"):
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        with pytest.raises(BlobStoreFailed, match="cannot be stored in s3://b"):
            await ObjectStore("s3://b").probe()


@pytest.mark.parametrize("url", ["s3://", "s3:///x", "ftp://x", "x"])
def test_malformed_store_urls_are_refused(url: str) -> None:
    with pytest.raises(BlobStoreFailed, match="not a valid object store URL"):
        ObjectStore(url)


@pytest.mark.parametrize(("body", "refusal"), [(b"roost", None), (b"ROOST", "other bytes than were written")])
async def test_a_service_that_gives_other_bytes_than_it_got(
    body: bytes, refusal: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = re.search(r"content-length: (\d+)", head)
        await reader.readexactly(int(length[1]) if length else 0)
        said, answer = {
            "put": ("200 OK", b""),
            "get": ("206 Partial Content\r\nContent-Range: bytes 0-4/5", body),
            "pos": ("200 OK", b"<DeleteResult><Deleted><Key>x</Key></Deleted></DeleteResult>"),
        }[head[:3]]
        said += '\r\nETag: "x"\r\nLast-Modified: Sat, 21 Nov 2026 10:00:00 GMT\r\nConnection: close'
        writer.write(f"HTTP/1.1 {said}\r\nContent-Length: {len(answer)}\r\n\r\n".encode() + answer)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        s3_server.set_environment(monkeypatch, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        objects = ObjectStore("s3://bucket/prefix")
        if refusal is None:
            assert await objects.probe() is not None  # it replaces objects
            return
        with pytest.raises(BlobStoreFailed, match=refusal):
            await objects.probe()
