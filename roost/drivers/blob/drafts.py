"""Drafts: files of this machine that are written in several sittings and then become objects, under every store.

Object stores cannot append, so what is unfinished stays on the disk of the server that takes it. What `sync` has
acknowledged is there after a power cut; what was written after it may be, and is cut off when the draft is opened.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

from roost.core import clock
from roost.drivers.blob.contract import KEY, BlobNotFound, BlobStore, BlobStoreFailed, BlobWriter
from roost.drivers.blob.disk_files import exactly, in_thread, opened, sync_folder, write_all

T = TypeVar("T")


class DraftStore:
    """Keys are as those of objects."""

    def __init__(self, folder: Path, blobs: BlobStore) -> None:
        self._folder = folder
        self._blobs = blobs

    async def create(self, key: str) -> None:
        """An empty draft. Raises BlobFailed."""
        await in_thread(lambda: self._create(self._path(key)))

    @asynccontextmanager
    async def open(self, key: str, size: int) -> AsyncGenerator["DraftFile"]:
        """The draft, of which the first `size` bytes count. Raises BlobMissing, also when it has fewer; BlobFailed."""
        draft = DraftFile(await opened(lambda: _open(self._path(key), size)), size)
        try:
            yield draft
        finally:
            await draft.close()

    def whole(self, key: str, object_key: str) -> BlobWriter:
        """Has been written: `commit` makes an object of the draft, which stays until it is removed."""
        return _DraftWriter(self._blobs, self._path(key), object_key)

    async def remove(self, key: str) -> None:
        """Idempotent. Raises BlobFailed."""
        await in_thread(lambda: self._path(key).unlink(missing_ok=True))

    async def sweep(self, older: timedelta) -> int:
        """Remove drafts that nobody wrote to for that long; how many there were."""
        return await in_thread(lambda: self._sweep(clock.utc_now() - older))

    def _path(self, key: str) -> Path:
        if KEY.fullmatch(key) is None:
            raise BlobNotFound
        return self._folder / key

    def _create(self, path: Path) -> None:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        sync_folder(self._folder)

    def _sweep(self, before: datetime) -> int:
        gone = 0
        for path in self._folder.glob("*"):
            with suppress(FileNotFoundError):
                if datetime.fromtimestamp(path.stat().st_mtime, UTC) < before:
                    path.unlink()
                    gone += 1
        return gone


class DraftFile:
    """Got from `Drafts.open`. One task at a time."""

    def __init__(self, file: int, size: int) -> None:
        self._file: int | None = file
        self._pending: asyncio.Task[object] | None = None
        self.size = size
        """Bytes that it has."""

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append. Raises BlobFailed."""
        await self._do(lambda file: write_all(file, data))
        self.size += len(data)

    async def sync(self) -> None:
        """What was written is there for good. Raises BlobFailed."""
        await self._do(os.fsync)

    async def read(self, offset: int, length: int) -> bytes:
        """Raises BlobMissing, BlobFailed."""
        return await self._do(lambda file: exactly(file, offset, length))

    async def close(self) -> None:
        """Waits for what a thread still does with the file: its number may be another's a moment later. Idempotent."""
        if self._file is None:
            return
        if self._pending is not None:
            await asyncio.gather(self._pending, return_exceptions=True)
        os.close(self._file)
        self._file = None

    async def _do(self, fn: Callable[[int], T]) -> T:
        """Runs to its end although the caller is cancelled."""
        if (file := self._file) is None:
            raise BlobStoreFailed("The draft is closed")
        doing = asyncio.create_task(in_thread(lambda: fn(file)))
        self._pending = doing
        return await asyncio.shield(doing)


class _DraftWriter(BlobWriter):
    def __init__(self, blobs: BlobStore, path: Path, key: str) -> None:
        self._blobs, self._path, self._key = blobs, path, key

    async def write(self, data: bytes | bytearray | memoryview) -> None:  # noqa: ARG002 - the contract's signature
        raise BlobStoreFailed("The object is finished")

    async def commit(self) -> None:
        await self._blobs.adopt(self._key, self._path)

    async def abort(self) -> None:
        """The draft stays."""


def _open(path: Path, size: int) -> int:
    file = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        _cut(file, size)
    except BaseException:
        os.close(file)
        raise
    return file


def _cut(file: int, size: int) -> None:
    if os.fstat(file).st_size < size:
        raise BlobNotFound
    os.ftruncate(file, size)
    os.lseek(file, size, os.SEEK_SET)
