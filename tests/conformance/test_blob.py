"""The contract of blob stores."""

from datetime import timedelta
from pathlib import Path

import pytest

from roost.drivers.blob.contract import BlobNotFound, BlobStore, BlobStoreFailed
from tests.conformance.blobs import s3_address, store

__all__ = ["s3_address", "store"]
KEY, OTHER = "ab" * 16, "cd" * 16
DATA = bytes(range(256)) * 5000


async def put(blobs: BlobStore, key: str = KEY, data: bytes = DATA) -> None:
    async with await blobs.create(key) as writer:
        for at in range(0, len(data), 300_000):
            await writer.write(memoryview(data)[at : at + 300_000])
        await writer.commit()


async def test_a_new_store_is_usable(store: BlobStore) -> None:
    await store.probe()
    await store.check()
    assert [blob async for blob in store.list()] == []


async def test_a_written_object_is_read(store: BlobStore) -> None:
    await put(store)
    assert await store.read(KEY, 0, len(DATA)) == DATA
    assert await store.read(KEY, 1000, 10) == DATA[1000:1010]
    assert await store.read(KEY, 5, 0) == b""


async def test_a_file_becomes_an_object(store: BlobStore, tmp_path: Path) -> None:
    draft = tmp_path / "draft"
    draft.write_bytes(DATA)
    await store.import_file(KEY, draft)
    draft.unlink()
    assert await store.read(KEY, 0, len(DATA)) == DATA
    with pytest.raises(BlobNotFound):
        await store.import_file(OTHER, tmp_path / "nothing")
    assert [blob.key async for blob in store.list()] == [KEY]


@pytest.mark.parametrize("piece", [1 << 20, 100_000, 65_537])
async def test_ranges_come_in_pieces(store: BlobStore, piece: int) -> None:
    await put(store)
    pieces = [one async for one in store.stream(KEY, 7, 700_000, piece)]
    assert b"".join(pieces) == DATA[7:700_007]
    assert {len(one) for one in pieces[:-1]} <= {piece}


async def test_an_empty_object(store: BlobStore) -> None:
    await put(store, data=b"")
    assert await store.read(KEY, 0, 0) == b""
    assert [blob.size async for blob in store.list()] == [0]


async def test_an_uncommitted_object_is_missing(store: BlobStore) -> None:
    async with await store.create(KEY) as writer:
        await writer.write(DATA)
        with pytest.raises(BlobNotFound):
            await store.read(KEY, 0, 1)
        assert [blob async for blob in store.list()] == []
    with pytest.raises(BlobNotFound):
        await store.read(KEY, 0, 1)


async def test_a_committed_writer_accepts_no_data(store: BlobStore) -> None:
    async with await store.create(KEY) as writer:
        await writer.commit()
        with pytest.raises(BlobStoreFailed):
            await writer.write(b"more")
        await writer.abort()
    assert await store.read(KEY, 0, 0) == b""


async def test_no_object_is_replaced(store: BlobStore) -> None:
    await put(store)
    with pytest.raises(BlobStoreFailed):
        await put(store, data=b"other")
    assert await store.read(KEY, 0, 3) == DATA[:3]


async def test_a_range_beyond_the_end_is_missing(store: BlobStore) -> None:
    await put(store, data=b"short")
    with pytest.raises(BlobNotFound):
        await store.read(KEY, 0, 6)
    with pytest.raises(BlobNotFound):
        _ = [one async for one in store.stream(KEY, 0, 6, 4)]


async def test_deleted_blob_is_gone_and_others_stay(store: BlobStore) -> None:
    await put(store)
    await put(store, OTHER, b"x")
    await store.delete(KEY)
    await store.delete(KEY)
    with pytest.raises(BlobNotFound):
        await store.read(KEY, 0, 1)
    assert [(blob.key, blob.size) async for blob in store.list()] == [(OTHER, 1)]


@pytest.mark.parametrize("key", ["", "../x", "AB" * 16, "ab" * 15, "ab" * 16 + "/x"])
async def test_a_malformed_key_is_refused(store: BlobStore, key: str) -> None:
    with pytest.raises(BlobNotFound):
        await put(store, key)


async def test_an_open_draft_is_not_swept(store: BlobStore) -> None:
    async with await store.create(KEY) as writer:
        await writer.write(DATA)
        assert await store.sweep(timedelta(hours=1)) == 0
        await writer.commit()
    assert await store.read(KEY, 0, 4) == DATA[:4]
    await store.close()
