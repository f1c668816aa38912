"""Objects as files of one folder: written beside, synced, renamed, and the folder synced, before they count.

`DATA/blobs/ab/abcdef...` are the objects, `DATA/blobs/new/` is what is being written. A file is handed to the disk
while it comes, so that the last sync has little left to wait for.
"""

import asyncio
import errno
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import ClassVar

from roost.core import clock, ids
from roost.drivers.blob.contract import KEY, BlobInfo, BlobNotFound, BlobStore, BlobStoreFailed, BlobWriter
from roost.drivers.blob.disk_files import at_hand, exactly, in_thread, opened, sync_folder, write_all, write_direct

_SYNC_EVERY = 64 * 1024**2
_READ_SOON = 8 * 1024**2
"""Bytes of an object that stay in the system's memory when they are written; what follows goes to the disk directly."""
_PAGE = 256
_SMALL = 256 * 1024


class FolderStore(BlobStore):
    name: ClassVar[str] = "folder"

    def __init__(self, root: Path) -> None:
        self._root = root
        self._new = root / "new"
        self._is_made = False

    async def check(self) -> None:
        await in_thread(self._check)

    async def probe(self) -> None:
        key = ids.random_bytes(16).hex()
        try:
            async with await self.create(key) as writer:
                await writer.write(b"roost")
                await writer.commit()
            if await self.read(key, 0, 5) != b"roost":
                raise BlobStoreFailed(f"What is written to {self._root} is not what is read there")
        except BlobNotFound:
            raise BlobStoreFailed(f"Objects cannot be kept in {self._root}") from None
        finally:
            await self.delete(key)

    async def create(self, key: str) -> BlobWriter:
        opening = asyncio.create_task(in_thread(lambda: self._begin(key)))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:  # the thread opens it all the same
            with suppress(BlobStoreFailed, BlobNotFound):
                await (await opening).abort()
            raise

    async def adopt(self, key: str, file: Path) -> None:
        """On one file system it is a second name for the file, whatever its size."""
        if not await in_thread(lambda: self._take(key, file)):
            await super().adopt(key, file)

    async def read(self, key: str, offset: int, length: int) -> bytes:
        path = self._place(key)
        found = at_hand(path, offset, length) if length <= _SMALL else None
        return await in_thread(lambda: self._read(path, offset, length)) if found is None else found

    async def stream(self, key: str, offset: int, length: int, piece: int) -> AsyncGenerator[bytes]:
        file = await opened(lambda: self._opened(self._place(key)))
        try:
            end = offset + length
            while offset < end:
                want = min(piece, end - offset)
                yield await in_thread(lambda at=offset, want=want: exactly(file, at, want))
                offset += want
        finally:
            os.close(file)

    async def delete(self, key: str) -> None:
        await in_thread(lambda: self._path(key).unlink(missing_ok=True))

    async def list(self) -> AsyncIterator[BlobInfo]:
        files = self._files()
        while page := await in_thread(lambda: [blob for _, blob in zip(range(_PAGE), files, strict=False)]):
            for blob in page:
                yield blob

    async def sweep(self, older: timedelta) -> int:
        return await in_thread(lambda: self._sweep(clock.utc_now() - older))

    async def close(self) -> None:
        """There are none."""

    def _begin(self, key: str) -> "_FileWriter":
        return _FileWriter(self._new / key, self._room(key))

    def _take(self, key: str, file: Path) -> bool:
        return _adopt(file, self._room(key))

    def _room(self, key: str) -> Path:
        """Where an object goes. All folders are made, the first but once: if it is gone later, so is the disk that it
        was on, and another is not to take its place.
        """
        path = self._path(key)
        if not self._is_made:
            self._new.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._is_made = True
        self._check()
        path.parent.mkdir(exist_ok=True, mode=0o700)
        return path

    def _check(self) -> None:
        if not self._new.is_dir():
            raise BlobStoreFailed(f"The folder {self._root} is gone")

    def _opened(self, path: str) -> int:
        try:
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            if self._is_made:  # an object is lost only where the others are there
                self._check()
            raise

    def _read(self, path: str, offset: int, length: int) -> bytes:
        file = self._opened(path)
        try:
            return exactly(file, offset, length)
        finally:
            os.close(file)

    def _path(self, key: str) -> Path:
        return Path(self._place(key))

    def _place(self, key: str) -> str:
        """The same as text: to make a path of it takes as long as to read what is small."""
        if KEY.fullmatch(key) is None:
            raise BlobNotFound
        return f"{self._root}/{key[:2]}/{key}"

    def _files(self) -> Iterator[BlobInfo]:
        for folder in sorted(self._root.glob("[0-9a-f][0-9a-f]")):
            for path in folder.iterdir():
                with suppress(FileNotFoundError):
                    if KEY.fullmatch(path.name):
                        yield _blob(path)

    def _sweep(self, before: datetime) -> int:
        gone = 0
        for path in self._new.glob("*"):
            with suppress(FileNotFoundError):  # it has become an object meanwhile
                if _blob(path).modified_at < before:
                    path.unlink()
                    gone += 1
        return gone


class _FileWriter(BlobWriter):
    def __init__(self, draft: Path, path: Path) -> None:
        self._draft, self._path = draft, path
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        self._file: int | None = os.open(draft, flags, 0o600)
        self._size = 0
        self._unsynced = 0
        self._writing: asyncio.Task[None] | None = None
        self._syncing: asyncio.Task[None] | None = None

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        file = self._open()
        size = self._size
        write = write_all if size < _READ_SOON else partial(write_direct, offset=size)
        await self._do(lambda: write(file, data))
        self._size += len(data)
        self._unsynced += len(data)
        if self._unsynced >= _SYNC_EVERY:
            self._unsynced = 0
            await self._synced()
            self._syncing = asyncio.create_task(in_thread(lambda: _settle(file)))

    async def commit(self) -> None:
        file = self._open()
        await self._synced()
        await self._do(lambda: _publish(file, self._draft, self._path))
        os.close(file)
        self._file = None

    async def abort(self) -> None:
        """Waits for what a thread still does with the file: its number may be another's a moment later."""
        if self._file is None:
            return
        pending = [task for task in (self._writing, self._syncing) if task is not None]
        await asyncio.gather(*pending, return_exceptions=True)
        os.close(self._file)
        self._file = None
        self._draft.unlink(missing_ok=True)

    def _open(self) -> int:
        if self._file is None:
            raise BlobStoreFailed("The object is finished")
        return self._file

    async def _do(self, fn: Callable[[], None]) -> None:
        """Runs to its end although the caller is cancelled."""
        self._writing = asyncio.create_task(in_thread(fn))
        await asyncio.shield(self._writing)

    async def _synced(self) -> None:
        if self._syncing is not None:
            await asyncio.shield(self._syncing)


def _adopt(file: Path, path: Path) -> bool:
    """Whether it could be done on this file system."""
    source = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        os.utime(source)  # as an object it is new: a sweep is not to take it before it is in the index
        os.fsync(source)
    finally:
        os.close(source)
    try:
        os.link(file, path)
    except OSError as error:
        if error.errno not in {errno.EXDEV, errno.EPERM}:
            raise
        return False
    for folder in (path.parent, path.parent.parent):
        sync_folder(folder)
    return True


def _settle(file: int) -> None:
    """Hand what was written to the disk and let its memory go: large uploads are not to push out what is read."""
    os.fdatasync(file)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)


def _publish(file: int, draft: Path, path: Path) -> None:
    os.fsync(file)
    os.link(draft, path)  # unlike a rename, it replaces nothing
    draft.unlink()
    for folder in (path.parent, path.parent.parent):
        sync_folder(folder)


def _blob(path: Path) -> BlobInfo:
    info = path.stat()
    return BlobInfo(path.name, info.st_size, datetime.fromtimestamp(info.st_mtime, UTC))
