"""What only files have: what a crash leaves, and what is durable when."""

import asyncio
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from roost.core import clock
from roost.drivers.blob.contract import BlobNotFound, BlobStoreFailed
from roost.drivers.blob.folder_store import FolderStore

KEY = "ab" * 16
_CUT_OFF = """
import asyncio, os, sys
from pathlib import Path
from roost.drivers.blob.folder_store import FolderStore

async def main():
    writer = await FolderStore(Path(sys.argv[1])).create("ab" * 16)
    await writer.write(b"x" * 100_000)
    os.kill(os.getpid(), 9)

asyncio.run(main())
"""


async def test_leftover_of_a_crash_is_swept_and_never_listed(tmp_path: Path) -> None:
    await asyncio.to_thread(subprocess.run, [sys.executable, "-c", _CUT_OFF, str(tmp_path)], check=False)
    store = FolderStore(tmp_path)
    (left,) = (tmp_path / "new").iterdir()
    assert left.stat().st_size == 100_000
    assert [blob async for blob in store.list()] == []
    assert await store.sweep(timedelta(hours=1)) == 0
    old = left.stat().st_mtime - 7200
    os.utime(left, (old, old))
    assert await store.sweep(timedelta(hours=1)) == 1
    assert not left.exists()


async def test_nobody_else_reads_the_files(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "blobs")
    async with await store.create(KEY) as writer:
        await writer.write(b"mine")
        await writer.commit()
    path = tmp_path / "blobs" / KEY[:2] / KEY
    assert path.read_bytes() == b"mine"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


async def test_a_writer_that_is_cut_off_leaves_no_file_open(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    await store.probe()
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - only how many

    async def write() -> None:
        async with await store.create(KEY) as writer:
            while True:
                await writer.write(b"x" * 1_000_000)

    task = asyncio.create_task(write())
    while not list(tmp_path.glob("new/*")):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208 - only how many
    assert not list(tmp_path.glob("new/*"))


async def test_a_folder_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(BlobStoreFailed, match="not available"):
        await FolderStore(tmp_path / "file").probe()


async def test_a_file_that_became_an_object_while_it_was_looked_at_stops_no_sweep(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / KEY).symlink_to(tmp_path / "gone")
    assert await FolderStore(tmp_path).sweep(timedelta(0)) == 0


async def test_an_old_file_that_is_adopted_is_a_new_object(tmp_path: Path) -> None:
    draft = tmp_path / "draft"
    draft.write_bytes(b"mine")
    os.utime(draft, (0, 0))
    store = FolderStore(tmp_path / "blobs")
    await store.import_file(KEY, draft)
    (found,) = [blob async for blob in store.list()]
    assert found.modified_at > clock.utc_now() - timedelta(hours=1)


async def test_failed_creation_keeps_a_cancellation(tmp_path: Path) -> None:
    (tmp_path / "new").write_text("in the way")
    beginning = asyncio.create_task(FolderStore(tmp_path).create(KEY))
    await asyncio.sleep(0)
    beginning.cancel()
    with pytest.raises(asyncio.CancelledError):
        await beginning


async def test_a_folder_that_is_gone_is_not_made_again(tmp_path: Path) -> None:
    """Its disk may be back soon; what came meanwhile would be hidden below it."""
    root = tmp_path / "disk" / "blobs"
    store = FolderStore(root)
    await store.probe()
    draft = tmp_path / "draft"
    draft.write_bytes(b"mine")
    writer = await store.create(KEY)
    await writer.write(b"mine")
    (tmp_path / "disk").rename(tmp_path / "elsewhere")
    (tmp_path / "disk").mkdir()
    with pytest.raises(BlobStoreFailed, match="no longer exists") as refused:
        await store.create(KEY)
    assert str(tmp_path) not in str(refused.value), "clients read it"
    with pytest.raises(BlobStoreFailed, match="no longer exists"):
        await store.import_file(KEY, draft)
    with pytest.raises(BlobStoreFailed, match="no longer exists"):
        await writer.commit()
    await writer.abort()
    with pytest.raises(BlobStoreFailed, match="no longer exists"):
        await store.check()
    for length in (5, 2**20):  # no object is said to be lost: it would be taken for damage
        with pytest.raises(BlobStoreFailed, match="no longer exists"):
            await store.read(KEY, 0, length)
        with pytest.raises(BlobStoreFailed, match="no longer exists"):
            await anext(store.stream(KEY, 0, length, length))
    assert list((tmp_path / "disk").iterdir()) == []
    (tmp_path / "disk").rmdir()
    (tmp_path / "elsewhere").rename(tmp_path / "disk")
    await store.probe()
    await store.check()
    with pytest.raises(BlobNotFound):
        await store.read(KEY, 0, 5)
