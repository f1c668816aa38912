"""What is done with files of this machine, whole and in threads, in the words that blob stores fail with."""

import asyncio
import errno
import fcntl
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from roost.drivers.blob.contract import BlobNotFound, BlobStoreFailed

T = TypeVar("T")
_ALIGNED = 4096


async def in_thread(fn: Callable[[], T]) -> T:
    """What may wait for a disk. Raises BlobMissing, BlobFailed."""
    with _translated():
        return await asyncio.to_thread(fn)


async def opened(fn: Callable[[], int]) -> int:
    """The number of the file that `fn` opens in a thread; for a caller who is cancelled meanwhile it is closed.

    Raises BlobMissing, BlobFailed.
    """
    opening = asyncio.create_task(in_thread(fn))
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:  # the thread opens it all the same
        opening.add_done_callback(_close)
        raise


def _close(opening: asyncio.Task[int]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        os.close(opening.result())


@contextmanager
def _translated() -> Generator[None]:
    try:
        yield
    except FileNotFoundError:
        raise BlobNotFound from None
    except OSError as error:
        raise BlobStoreFailed(f"The storage backend is not available: {error.strerror}") from error


def sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_all(file: int, data: bytes | bytearray | memoryview) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def write_direct(file: int, data: bytes | bytearray | memoryview, offset: int) -> None:
    """Write at the end of a file, which is at `offset`, past the system's memory where that can be done.

    It saves the system a copy, and large content does not push out what is read. Where a file system, or the place of
    the bytes in file or memory, does not allow it, it is written as usual. Nothing is there for good before a sync.
    """
    view = memoryview(data)
    _set_direct(file, on=(offset | len(view)) % _ALIGNED == 0)
    while view:
        try:
            view = view[os.write(file, view) :]
        except OSError as error:
            if error.errno != errno.EINVAL or not _set_direct(file, on=False):
                raise


def _set_direct(file: int, *, on: bool) -> bool:
    """Whether that could be changed."""
    flags = fcntl.fcntl(file, fcntl.F_GETFL)
    if on == bool(flags & os.O_DIRECT):
        return False
    try:
        fcntl.fcntl(file, fcntl.F_SETFL, flags ^ os.O_DIRECT)
    except OSError:  # this file system cannot
        return False
    return True


def at_hand(path: str, offset: int, length: int) -> bytes | None:
    """The bytes, if the system has them in memory: then a thread costs more than they do. None says nothing."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            found = bytearray(length)
            return bytes(found) if os.preadv(file, [found], offset, os.RWF_NOWAIT) == length else None
        finally:
            os.close(file)
    except OSError:  # it would have to wait, or it is said by whoever reads it properly
        return None


def exactly(file: int, offset: int, length: int) -> bytes:
    found = os.pread(file, length, offset)
    while len(found) < length:
        more = os.pread(file, length - len(found), offset + len(found))
        if not more:
            raise BlobNotFound
        found += more
    return found
