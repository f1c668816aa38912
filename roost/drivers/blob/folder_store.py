"""Objects as files of one folder: written under a temporary name, synced and linked before they are visible.

`DATA/blobs/ab/abcdef...` are the objects, `DATA/blobs/new/` holds unfinished ones. A file is flushed while it is
written, so that the final sync is short.
"""

import asyncio
import errno
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import ClassVar, TypeVar

from roost.core import clock, ids
from roost.drivers.blob.contract import (
    KEY_PATTERN,
    BlobInfo,
    BlobNotFound,
    BlobStore,
    BlobStoreFailed,
    BlobWriter,
    check_key,
    translate_file_errors,
)
from roost.drivers.blob.disk_files import (
    open_in_thread,
    read_cached,
    read_exactly,
    run_in_thread,
    sweep_files,
    sync_folder,
    write_all,
    write_direct,
    write_vectors,
)

T = TypeVar("T")
_SYNC_INTERVAL_BYTES = 64 * 1024**2
_CACHED_BYTES = 8 * 1024**2
"""Bytes at the start of an object that are written through the page cache; later ones bypass it."""
_PAGE_SIZE = 256
_MAX_CACHED_READ = 256 * 1024
_FOLDER_GONE = "The storage backend is not available: its folder no longer exists"  # clients read it: no path


class FolderStore(BlobStore):
    name: ClassVar[str] = "folder"

    def __init__(self, root: Path) -> None:
        self._root = root
        self._new = root / "new"
        self._is_initialized = False

    async def check(self) -> None:
        await run_in_thread(self._check)

    async def probe(self) -> None:
        key = ids.random_bytes(16).hex()
        try:
            async with await self.create(key) as writer:
                await writer.write(b"roost")
                await writer.commit()
            if await self.read(key, 0, 5) != b"roost":
                raise BlobStoreFailed(f"{self._root} returns other bytes than were written")
        except BlobNotFound:
            raise BlobStoreFailed(f"Objects cannot be stored in {self._root}") from None
        finally:
            await self.delete(key)

    async def create(self, key: str) -> BlobWriter:
        opening = asyncio.create_task(run_in_thread(lambda: _in_folder(lambda: self._create_writer(key))))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:  # the thread opens it nevertheless
            with suppress(BlobStoreFailed, BlobNotFound):
                await (await opening).abort()
            raise

    async def import_file(self, key: str, file: Path) -> None:
        """Link the file instead of copying it, if it is on the same file system."""
        if not await run_in_thread(lambda: self._link_file(key, file)):
            await super().import_file(key, file)

    async def read(self, key: str, offset: int, length: int) -> bytes:
        path = self._path_text(key)
        found = read_cached(path, offset, length) if length <= _MAX_CACHED_READ else None
        return await run_in_thread(lambda: self._read(path, offset, length)) if found is None else found

    async def stream(self, key: str, offset: int, length: int, piece: int) -> AsyncGenerator[bytes]:
        file = await open_in_thread(lambda: self._open(self._path_text(key)))
        try:
            end = offset + length
            while offset < end:
                size = min(piece, end - offset)
                yield await run_in_thread(lambda at=offset, size=size: read_exactly(file, at, size))
                offset += size
        finally:
            os.close(file)

    async def delete(self, key: str) -> None:
        await run_in_thread(lambda: self._path(key).unlink(missing_ok=True))

    async def list(self) -> AsyncIterator[BlobInfo]:
        files = self._list_files()
        while page := await run_in_thread(lambda: [blob for _, blob in zip(range(_PAGE_SIZE), files, strict=False)]):
            for blob in page:
                yield blob

    async def sweep(self, older: timedelta) -> int:
        return await run_in_thread(lambda: sweep_files(self._new, clock.utc_now() - older))

    async def close(self) -> None:
        """Do nothing: there are no connections."""

    def _create_writer(self, key: str) -> "_FileWriter":
        return _FileWriter(self._new / key, self._prepare_path(key))

    def _link_file(self, key: str, file: Path) -> bool:
        return _link_object(file, _in_folder(lambda: self._prepare_path(key)))

    def _prepare_path(self, key: str) -> Path:
        """Create the folder of an object and return its path.

        The root is created only once: if it vanishes, its disk was unmounted, and a new folder must not replace it.
        """
        path = self._path(key)
        if not self._is_initialized:
            self._new.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._is_initialized = True
        self._check()
        path.parent.mkdir(exist_ok=True, mode=0o700)
        return path

    def _check(self) -> None:
        if not self._new.is_dir():
            raise BlobStoreFailed(_FOLDER_GONE)

    def _open(self, path: str) -> int:
        try:
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            if self._is_initialized:  # a missing object is an error of the store if the whole folder is missing
                self._check()
            raise

    def _read(self, path: str, offset: int, length: int) -> bytes:
        file = self._open(path)
        try:
            return read_exactly(file, offset, length)
        finally:
            os.close(file)

    def _path(self, key: str) -> Path:
        return Path(self._path_text(key))

    def _path_text(self, key: str) -> str:
        """Return the path as a string, because building a Path takes as long as reading a small object."""
        check_key(key)
        return f"{self._root}/{key[:2]}/{key}"

    def _list_files(self) -> Iterator[BlobInfo]:
        for folder in sorted(self._root.glob("[0-9a-f][0-9a-f]")):
            for path in folder.iterdir():
                with suppress(FileNotFoundError):
                    if KEY_PATTERN.fullmatch(path.name):
                        yield _blob_info(path)


class _FileWriter(BlobWriter):
    def __init__(self, draft: Path, path: Path) -> None:
        self._draft, self._path = draft, path
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        self._file: int | None = os.open(draft, flags, 0o600)
        self._size = 0
        self._unsynced = 0
        self._writing: asyncio.Future[None] | None = None
        self._syncing: asyncio.Task[None] | None = None

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        file = self._open_file()
        size = self._size
        write = write_all if size < _CACHED_BYTES else partial(write_direct, offset=size)
        await self._append(file, len(data), lambda: write(file, data))

    async def write_parts(self, parts: Sequence[bytes | memoryview]) -> None:
        file = self._open_file()
        await self._append(file, sum(map(len, parts)), lambda: write_vectors(file, parts))

    async def _append(self, file: int, size: int, write: Callable[[], None]) -> None:
        await self._run(write)
        self._size += size
        self._unsynced += size
        if self._unsynced >= _SYNC_INTERVAL_BYTES:
            self._unsynced = 0
            await self._wait_for_sync()
            self._syncing = asyncio.create_task(run_in_thread(lambda: _flush(file)))

    async def commit(self) -> None:
        file = self._open_file()
        await self._wait_for_sync()
        await self._run(lambda: _publish(file, self._draft, self._path))
        os.close(file)
        self._file = None

    async def abort(self) -> None:
        """Wait for pending operations, because the descriptor may be reused at once, and remove the file."""
        if self._file is None:
            return
        pending = [task for task in (self._writing, self._syncing) if task is not None]
        await asyncio.gather(*pending, return_exceptions=True)
        os.close(self._file)
        self._file = None
        self._draft.unlink(missing_ok=True)

    def _open_file(self) -> int:
        if self._file is None:
            raise BlobStoreFailed("The object is already finished")
        return self._file

    async def _run(self, fn: Callable[[], None]) -> None:
        """Run `fn` in a thread to its end, even if the caller is cancelled."""
        with translate_file_errors():
            self._writing = asyncio.get_running_loop().run_in_executor(None, lambda: _in_folder(fn))
            await asyncio.shield(self._writing)

    async def _wait_for_sync(self) -> None:
        if self._syncing is not None:
            await asyncio.shield(self._syncing)


def _in_folder(fn: Callable[[], T]) -> T:
    """Run `fn`, which writes into the folder of the store. Raises BlobStoreFailed if the folder has disappeared."""
    try:
        return fn()
    except FileNotFoundError as error:
        raise BlobStoreFailed(_FOLDER_GONE) from error


def _link_object(file: Path, path: Path) -> bool:
    """Link a file as an object; return False if the file system does not allow it."""
    source = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        os.utime(source)  # counts as new, so that a sweep does not remove it before it is in the index
        os.fsync(source)
    finally:
        os.close(source)
    try:
        _in_folder(lambda: os.link(file, path))
    except OSError as error:
        if error.errno not in {errno.EXDEV, errno.EPERM}:
            raise
        return False
    for folder in (path.parent, path.parent.parent):
        sync_folder(folder)
    return True


def _flush(file: int) -> None:
    """Flush to the disk and drop the pages, so that large uploads do not evict cached content."""
    os.fdatasync(file)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)


def _publish(file: int, draft: Path, path: Path) -> None:
    os.fsync(file)
    os.link(draft, path)  # unlike a rename, it replaces nothing
    draft.unlink()
    for folder in (path.parent, path.parent.parent):
        sync_folder(folder)


def _blob_info(path: Path) -> BlobInfo:
    info = path.stat()
    return BlobInfo(path.name, info.st_size, datetime.fromtimestamp(info.st_mtime, UTC))
