"""Operations on local files, run in threads, with the errors of blob stores."""

import asyncio
import errno
import fcntl
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from roost.core.machine.disk_space import UPLOAD_RESERVE, read_disk_space
from roost.drivers.blob.contract import BlobNotFound, translate_file_errors

T = TypeVar("T")
_ALIGNMENT = 4096
_MAX_VECTORS = 1024
"""Parts of one write (IOV_MAX of Linux)."""


async def run_in_thread(fn: Callable[[], T]) -> T:
    """Run `fn`, which may wait for a disk, in a thread. Raises BlobNotFound, BlobStoreFailed."""
    with translate_file_errors():
        return await asyncio.to_thread(fn)


async def open_in_thread(fn: Callable[[], int]) -> int:
    """Run `fn` in a thread and return the file descriptor that it opens; close it if the caller is cancelled.

    Raises BlobNotFound, BlobStoreFailed.
    """
    opening = asyncio.create_task(run_in_thread(fn))
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:  # the thread opens it nevertheless
        opening.add_done_callback(_close_result)
        raise


def _close_result(opening: asyncio.Task[int]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        os.close(opening.result())


def sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def sweep_files(folder: Path, before: datetime) -> int:
    """Remove the files of a folder that were last written before a time, and return their number."""
    removed = 0
    for path in folder.glob("*"):
        with suppress(FileNotFoundError):  # it was renamed or removed in the meantime
            if datetime.fromtimestamp(path.stat().st_mtime, UTC) < before:
                path.unlink()
                removed += 1
    return removed


def check_free_space(file: int, size: int) -> None:
    """Check that `size` bytes fit on the disk of a file beside the reserve. Raises OSError (ENOSPC)."""
    if not read_disk_space(file).leaves(UPLOAD_RESERVE, size):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def write_all(file: int, data: bytes | bytearray | memoryview) -> None:
    """Append after checking the free space."""
    check_free_space(file, len(data))
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def write_vectors(file: int, parts: Sequence[bytes | memoryview]) -> None:
    """Append parts after checking the free space, without a copy of them."""
    _set_direct(file, on=False)
    check_free_space(file, sum(map(len, parts)))
    for at in range(0, len(parts), _MAX_VECTORS):
        some = parts[at : at + _MAX_VECTORS]
        written = os.writev(file, some)
        if rest := memoryview(b"".join(some))[written:] if written < sum(map(len, some)) else None:
            write_all(file, rest)


def write_direct(file: int, data: bytes | bytearray | memoryview, offset: int) -> None:
    """Append at `offset`, the end of the file, past the page cache (O_DIRECT) where possible.

    This saves a copy and keeps large content from evicting cached pages. If the file system or the alignment does not
    allow it, the write is an ordinary one. Only a sync makes it durable.
    """
    check_free_space(file, len(data))
    view = memoryview(data)
    _set_direct(file, on=(offset | len(view)) % _ALIGNMENT == 0)
    while view:
        try:
            view = view[os.write(file, view) :]
        except OSError as error:
            if error.errno != errno.EINVAL or not _set_direct(file, on=False):
                raise


def _set_direct(file: int, *, on: bool) -> bool:
    """Switch O_DIRECT and return whether that changed it."""
    flags = fcntl.fcntl(file, fcntl.F_GETFL)
    if on == bool(flags & os.O_DIRECT):
        return False
    try:
        fcntl.fcntl(file, fcntl.F_SETFL, flags ^ os.O_DIRECT)
    except OSError:  # the file system does not support it
        return False
    return True


def read_cached(path: str, offset: int, length: int) -> bytes | None:
    """Return the bytes if they are in the page cache, where a read is cheaper than a thread; else None."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            found = bytearray(length)
            return bytes(found) if os.preadv(file, [found], offset, os.RWF_NOWAIT) == length else None
        finally:
            os.close(file)
    except OSError:  # the read would block, or fails again in the thread, which reports the error
        return None


def read_exactly(file: int, offset: int, length: int) -> bytes:
    found = os.pread(file, length, offset)
    while len(found) < length:
        more = os.pread(file, length - len(found), offset + len(found))
        if not more:
            raise BlobNotFound
        found += more
    return found
