"""Drafts: local files that are written in several requests and then become objects of any store.

Object stores cannot append, so unfinished content stays on the local disk. Bytes before the last `sync` survive a power
failure; later ones may, and are truncated when the draft is opened.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

from roost.core import clock
from roost.drivers.blob.contract import BlobNotFound, BlobStore, BlobStoreFailed, BlobWriter, check_key
from roost.drivers.blob.disk_files import (
    open_in_thread,
    read_exactly,
    run_in_thread,
    sweep_files,
    sync_folder,
    write_all,
)

T = TypeVar("T")


class DraftStore:
    """Store of drafts, under keys of the same form as those of objects."""

    def __init__(self, folder: Path, blobs: BlobStore) -> None:
        self._folder = folder
        self._blobs = blobs

    async def create(self, key: str) -> None:
        """Create an empty draft. Raises BlobStoreFailed."""
        await run_in_thread(lambda: self._create(self._path(key)))

    @asynccontextmanager
    async def open(self, key: str, size: int) -> AsyncGenerator["DraftFile"]:
        """Open a draft, truncated to `size`. Raises BlobNotFound, also if it is shorter, and BlobStoreFailed."""
        draft = DraftFile(await open_in_thread(lambda: _open_truncated(self._path(key), size)), size)
        try:
            yield draft
        finally:
            await draft.close()

    def object_writer(self, key: str, object_key: str) -> BlobWriter:
        """Return a writer whose `commit` stores the draft as an object; the draft stays until it is removed."""
        return _DraftWriter(self._blobs, self._path(key), object_key)

    async def remove(self, key: str) -> None:
        """Remove a draft. Idempotent. Raises BlobStoreFailed."""
        await run_in_thread(lambda: self._path(key).unlink(missing_ok=True))

    async def sweep(self, older: timedelta) -> int:
        """Remove drafts without a write for that long and return their number."""
        return await run_in_thread(lambda: sweep_files(self._folder, clock.utc_now() - older))

    def _path(self, key: str) -> Path:
        return self._folder / check_key(key)

    def _create(self, path: Path) -> None:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        sync_folder(self._folder)


class DraftFile:
    """An open draft, for use by one task at a time; see `DraftStore.open`."""

    def __init__(self, file: int, size: int) -> None:
        self._file: int | None = file
        self._pending: asyncio.Task[object] | None = None
        self.size = size
        """Bytes written."""

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append `data`. Raises BlobStoreFailed."""
        await self._run(lambda file: write_all(file, data))
        self.size += len(data)

    async def sync(self) -> None:
        """Make all written bytes durable. Raises BlobStoreFailed."""
        await self._run(os.fsync)

    async def read(self, offset: int, length: int) -> bytes:
        """Read exactly `length` bytes. Raises BlobNotFound, BlobStoreFailed."""
        return await self._run(lambda file: read_exactly(file, offset, length))

    async def close(self) -> None:
        """Wait for a pending operation, because the descriptor may be reused at once, and close. Idempotent."""
        if self._file is None:
            return
        if self._pending is not None:
            await asyncio.gather(self._pending, return_exceptions=True)
        os.close(self._file)
        self._file = None

    async def _run(self, fn: Callable[[int], T]) -> T:
        """Run `fn` in a thread to its end, even if the caller is cancelled."""
        if (file := self._file) is None:
            raise BlobStoreFailed("The draft is closed")
        task = asyncio.create_task(run_in_thread(lambda: fn(file)))
        self._pending = task
        return await asyncio.shield(task)


class _DraftWriter(BlobWriter):
    def __init__(self, blobs: BlobStore, path: Path, key: str) -> None:
        self._blobs, self._path, self._key = blobs, path, key

    async def write(self, data: bytes | bytearray | memoryview) -> None:  # noqa: ARG002 - the contract's signature
        raise BlobStoreFailed("The object is already finished")

    async def commit(self) -> None:
        await self._blobs.import_file(self._key, self._path)

    async def abort(self) -> None:
        """Do nothing: the draft stays."""


def _open_truncated(path: Path, size: int) -> int:
    file = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        _truncate(file, size)
    except BaseException:
        os.close(file)
        raise
    return file


def _truncate(file: int, size: int) -> None:
    if os.fstat(file).st_size < size:
        raise BlobNotFound
    os.ftruncate(file, size)
    os.lseek(file, size, os.SEEK_SET)
