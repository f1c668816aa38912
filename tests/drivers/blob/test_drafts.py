"""Drafts keep what they acknowledged, and nothing of what came after it."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from roost.drivers.blob.contract import BlobNotFound, BlobStore, BlobStoreFailed
from roost.drivers.blob.drafts import DraftStore
from roost.drivers.blob.folder_store import FolderStore
from tests.conformance.blobs import s3_address, store

__all__ = ["s3_address", "store"]
KEY, OBJECT = "ab" * 16, "cd" * 16


@pytest.fixture
def blobs(tmp_path: Path) -> FolderStore:
    return FolderStore(tmp_path / "blobs")


@pytest.fixture
def drafts(tmp_path: Path, blobs: FolderStore) -> DraftStore:
    return DraftStore(tmp_path / "drafts", blobs)


async def append(drafts: DraftStore, size: int, data: bytes) -> None:
    async with drafts.open(KEY, size) as draft:
        await draft.write(data)
        await draft.sync()


async def test_a_draft_grows_by_several_appends(drafts: DraftStore, blobs: FolderStore) -> None:
    await drafts.create(KEY)
    await append(drafts, 0, b"one")
    await append(drafts, 3, b"two")
    async with drafts.open(KEY, 6) as draft:
        assert await draft.read(0, 6) == b"onetwo"
        assert draft.size == 6
    await drafts.object_writer(KEY, OBJECT).commit()
    await drafts.remove(KEY)
    await drafts.remove(KEY)
    assert await blobs.read(OBJECT, 0, 6) == b"onetwo"


async def test_unacknowledged_bytes_are_cut_off(drafts: DraftStore) -> None:
    await drafts.create(KEY)
    await append(drafts, 0, b"one and more")
    await append(drafts, 3, b"!")
    async with drafts.open(KEY, 4) as draft:
        assert await draft.read(0, 4) == b"one!"
        with pytest.raises(BlobNotFound):
            await draft.read(0, 5)


async def test_one_that_is_shorter_than_acknowledged_is_missing(drafts: DraftStore) -> None:
    await drafts.create(KEY)
    await append(drafts, 0, b"one")
    for key, size in ((KEY, 4), (OBJECT, 0), ("../x", 0)):
        with pytest.raises(BlobNotFound):
            async with drafts.open(key, size):
                pass


async def test_a_cut_off_write_ends_before_the_file_is_closed(drafts: DraftStore) -> None:
    await drafts.create(KEY)
    async with drafts.open(KEY, 0) as draft:
        writing = asyncio.create_task(draft.write(b"x" * 10_000_000))
        await asyncio.sleep(0)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
    with pytest.raises(BlobStoreFailed):
        await draft.write(b"x")
    await append(drafts, 0, b"again")


async def test_every_store_takes_one(tmp_path: Path, store: BlobStore) -> None:
    drafts = DraftStore(tmp_path / "drafts", store)
    await drafts.create(KEY)
    await append(drafts, 0, b"one")
    await drafts.object_writer(KEY, OBJECT).commit()
    assert await store.read(OBJECT, 0, 3) == b"one"


async def test_old_ones_are_swept(drafts: DraftStore) -> None:
    await drafts.create(KEY)
    assert await drafts.sweep(timedelta(hours=1)) == 0
    assert await drafts.sweep(timedelta(seconds=-1)) == 1
    assert await drafts.sweep(timedelta(0)) == 0
