"""Content of many files: small ones in batches, large ones in parts."""

from __future__ import annotations

import os
import stat
import time

from .files import SETTLED_NS, file_stamp, reopen_file
from .folder_stack import FolderStack, split_plain_path
from .protocol import RequestRefused, error_code

SMALL_BYTES, BATCH_BYTES, BATCH_FILES, PART_BYTES = 128 * 1024, 512 * 1024, 1000, 512 * 1024
BUFFER_BYTES = BATCH_BYTES + SMALL_BYTES

FileRow = list[object]


class LargeFile:
    """Open file whose content is sent in parts; at most as many bytes as it had when it was opened."""

    def __init__(self, fd: int, info: os.stat_result) -> None:
        self._fd, self._info, self._remaining = fd, info, info.st_size

    def read_part(self, buffer: memoryview) -> memoryview:
        """Read the next part into the buffer, and return what was read; it is empty at the end."""
        count = os.readv(self._fd, [buffer[: min(self._remaining, PART_BYTES)]])
        self._remaining -= count
        return buffer[:count]

    def is_changed(self) -> bool:
        """Return whether the file changed while it was read."""
        return self._remaining > 0 or _version(os.fstat(self._fd)) != _version(self._info)

    def close(self) -> None:
        os.close(self._fd)


class FileBatch:
    """Rows of files in their order, content of the small ones if there are any, and the large file that ends the batch.

    The content is in a buffer of `BUFFER_BYTES`, which the next batch uses again: new memory for every file and batch
    would cost more than reading them.
    """

    def __init__(self, buffer: memoryview) -> None:
        self.rows: list[FileRow] = []
        self.content: memoryview | None = None
        self.large: LargeFile | None = None
        self._buffer, self._size = buffer, 0
        self._settled = time.time_ns() - SETTLED_NS

    @property
    def is_full(self) -> bool:
        return self.large is not None or self._size >= BATCH_BYTES or len(self.rows) >= BATCH_FILES

    def add_file(self, stack: FolderStack, path: str) -> None:
        """Add the row of a file: size, mode, stamp, length of the content and whether it changed, or an error."""
        try:
            fd = _open_file(stack, path)
        except (RequestRefused, OSError) as problem:
            self.rows.append([error_code(problem)])
            return
        info = os.fstat(fd)
        row: FileRow = [info.st_size, stat.S_IMODE(info.st_mode), *file_stamp(info, self._settled)]
        if info.st_size > SMALL_BYTES:
            self.rows.append([*row, -1, False])
            self.large = LargeFile(fd, info)
            return
        try:
            length = os.readv(fd, [self._buffer[self._size : self._size + info.st_size]])
            is_changed = length < info.st_size or _version(os.fstat(fd)) != _version(info)
        finally:
            os.close(fd)
        self.rows.append([*row, length, is_changed])
        self._size += length
        self.content = self._buffer[: self._size]


def read_batch(root: str, paths: list[str], buffer: memoryview) -> FileBatch:
    """Read files until the batch is full; an unreadable file has an error code in its row. Raises OSError."""
    batch, stack = FileBatch(buffer), FolderStack(root)
    try:
        for path in paths:
            batch.add_file(stack, path)
            if batch.is_full:
                break
    finally:
        stack.close()
    return batch


def _open_file(stack: FolderStack, path: str) -> int:
    *parents, name = split_plain_path(path)
    return reopen_file(os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=stack.enter(parents)), os.O_RDONLY, stat.S_ISREG)


def _version(info: os.stat_result) -> tuple[int, int, int]:
    return info.st_size, info.st_mtime_ns, info.st_ctime_ns
