"""Content of many files: small ones in batches, large ones in parts."""

from __future__ import annotations

import os
import stat
import time

from .files import reopen_file
from .folder_stack import FolderStack, split_plain_path
from .protocol import RequestRefused, error_code
from .tree_scan import SETTLED_NS, file_stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

SMALL_BYTES, BATCH_BYTES, BATCH_FILES, PART_BYTES = 128 * 1024, 512 * 1024, 1000, 512 * 1024

FileRow = list[object]


class LargeFile:
    """Open file whose content is sent in parts; at most as many bytes as it had when it was opened."""

    def __init__(self, fd: int, info: os.stat_result) -> None:
        self._fd, self._info, self._remaining = fd, info, info.st_size

    def read_part(self) -> bytes:
        data = os.read(self._fd, min(self._remaining, PART_BYTES))
        self._remaining -= len(data)
        return data

    def is_changed(self) -> bool:
        """Return whether the file changed while it was read."""
        return self._remaining > 0 or _version(os.fstat(self._fd)) != _version(self._info)

    def close(self) -> None:
        os.close(self._fd)


class FileBatch:
    """Rows of files in their order, content of the small ones, and the large file that ends the batch."""

    def __init__(self) -> None:
        self.rows: list[FileRow] = []
        self.contents: list[bytes] = []
        self.large: LargeFile | None = None
        self._bytes = 0
        self._settled = time.time_ns() - SETTLED_NS

    @property
    def is_full(self) -> bool:
        return self.large is not None or self._bytes >= BATCH_BYTES or len(self.rows) >= BATCH_FILES

    def add_file(self, open_file: Callable[[], int]) -> None:
        """Add the row of a file: size, mode, stamp, length of the content and whether it changed, or an error."""
        try:
            fd = open_file()
        except (RequestRefused, OSError) as problem:
            self.rows.append([error_code(problem)])
            return
        info = os.fstat(fd)
        row: FileRow = [info.st_size, stat.S_IMODE(info.st_mode), *file_stamp(info, self._settled)]
        file = LargeFile(fd, info)
        if info.st_size > SMALL_BYTES:
            self.rows.append([*row, -1, False])
            self.large = file
            return
        try:
            data = file.read_part()
            self.rows.append([*row, len(data), file.is_changed()])
        finally:
            file.close()
        self.contents.append(data)
        self._bytes += len(data)


def read_batch(root: str, paths: list[str]) -> FileBatch:
    """Read files until the batch is full; an unreadable file has an error code in its row. Raises OSError."""
    batch, stack = FileBatch(), FolderStack(root)
    try:
        for path in paths:
            batch.add_file(lambda path=path: _open_file(stack, path))
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
