"""Metadata of all entries below a root, and content of many files: small ones in batches, large ones in parts."""

from __future__ import annotations

import os
import stat
import time

from .files import MAX_DEPTH, SETTLED_NS, file_stamp, reopen_file, sorted_names
from .light_imports import format_json
from .protocol import RequestRefused, error_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

MAX_NAME_BYTES = 255
MAX_TREE_ENTRIES = 1_000_000
BATCH_CHARACTERS, ROW_CHARACTERS = 160_000, 80  # JSON escapes need up to six times as much, which a frame holds
STAGING_NAME = ".roost-staging"
FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK
SMALL_BYTES, BATCH_BYTES, BATCH_FILES, PART_BYTES = 128 * 1024, 512 * 1024, 1000, 512 * 1024
BUFFER_BYTES = BATCH_BYTES + SMALL_BYTES

FileRow = list[object]


class FolderStack:
    """Descriptors (O_PATH) of a root and of the folders on the way to the one that was entered last.

    Many paths in their order are reached with few calls. No link is followed.
    """

    def __init__(self, root: str) -> None:
        self.parts: list[str] = []
        self._fds = [os.open(root, os.O_PATH | os.O_DIRECTORY)]

    def enter(self, parts: list[str]) -> int:
        """Return the descriptor of a folder, which stays open until the next call. Raises RequestRefused, OSError."""
        common = 0
        for present, part in zip(self.parts, parts):  # noqa: B905 - of different length
            if present != part:
                break
            common += 1
        self._leave(common)
        for part in parts[common:]:
            self._fds.append(self.open_child(self._fds[-1], part))
            self.parts.append(part)
        return self._fds[-1]

    def open_child(self, folder: int, name: str) -> int:
        return os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)

    def find_present(self, parts: list[str], removed: set[tuple[str, ...]]) -> object:
        """Return the stamp of a file, the target of a link, and [] for neither.

        [] also stands for a folder of which all files and links are removed. The stamp has the exact time, which
        clients know only of entries that had rested.
        """
        try:
            folder = self.enter(parts[:-1])
            info = os.lstat(parts[-1], dir_fd=folder)
        except FileNotFoundError:
            return []
        except NotADirectoryError:  # something else is in the place of a folder
            return [] if any(tuple(parts[:depth]) in removed for depth in range(1, len(parts))) else None
        if stat.S_ISLNK(info.st_mode):
            return os.readlink(parts[-1], dir_fd=folder)
        if stat.S_ISDIR(info.st_mode):
            return [] if all(path in removed for path in self._list_files(parts)) else None
        return [info.st_mtime_ns, info.st_ctime_ns, info.st_ino]

    def _list_files(self, folder: list[str]) -> Generator[tuple[str, ...]]:
        """Yield the paths below a folder of what is no folder."""
        with os.scandir(f"/proc/self/fd/{self.enter(folder)}") as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    yield from self._list_files([*folder, entry.name])
                else:
                    yield (*folder, entry.name)

    def close(self) -> None:
        self._leave(0)
        os.close(self._fds.pop())

    def _leave(self, depth: int) -> None:
        while len(self.parts) > depth:
            self.parts.pop()
            os.close(self._fds.pop())


def split_plain_path(path: str) -> list[str]:
    """Return the parts of a path without `.`, `..` and empty parts. Raises RequestRefused."""
    parts = path.split("/")
    if len(parts) > MAX_DEPTH or "\0" in path or not {"", ".", ".."}.isdisjoint(parts):
        raise RequestRefused("pathRefused", "a path is relative, plain and not too deep")
    try:
        names = path.encode("utf-8", "surrogateescape").split(b"/")
    except UnicodeError:
        raise RequestRefused("pathRefused", "a name is no text") from None
    if max(map(len, names)) > MAX_NAME_BYTES:
        raise RequestRefused("pathRefused", f"a name has more than {MAX_NAME_BYTES} bytes")
    return parts


class ScanBatch:
    """Rows of depth, name, mode, size and stamp; targets of links and errors with the indexes of their rows."""

    def __init__(self) -> None:
        self._rows: list[tuple[int | str, ...]] = []
        self._targets: list[tuple[int, str]] = []
        self._errors: list[tuple[int, str]] = []
        self._settled = time.time_ns() - SETTLED_NS
        self._characters = 0

    @property
    def is_full(self) -> bool:
        return self._characters >= BATCH_CHARACTERS

    def add_row(self, depth: int, name: str, info: os.stat_result | None, target: str = "", error: str = "") -> None:
        if target:
            self._targets.append((len(self._rows), target))
        if error:
            self._errors.append((len(self._rows), error))
        stamp = file_stamp(info, self._settled) if info else (0, 0, 0)
        self._rows.append((depth, name, *((info[0], info[6]) if info else (0, 0)), *stamp))
        self._characters += ROW_CHARACTERS + len(name) + len(target)

    def format_frame(self) -> bytes:
        return format_json([self._rows, self._targets, self._errors]).encode()


def scan_tree(root: str) -> Generator[bytes]:
    """Yield frames of entries, depth first, a folder before its entries. Raises RequestRefused and OSError."""
    folder = os.open(root, FOLDER_FLAGS & ~os.O_NOFOLLOW)
    names = [name for name in sorted_names(folder) if not name.startswith(STAGING_NAME)]
    stack, total = [(folder, iter(names))], len(names)
    batch = ScanBatch()
    try:
        while stack:
            folder, remaining = stack[-1]
            for name in remaining:
                if child := _add_entry(batch, folder, name, len(stack) - 1):
                    stack.append((child[0], iter(child[1])))
                    total += len(child[1])
                if len(stack) > MAX_DEPTH or total > MAX_TREE_ENTRIES:
                    raise RequestRefused("tooMany", f"more than {MAX_TREE_ENTRIES} entries or {MAX_DEPTH} folders")
                if batch.is_full:
                    yield batch.format_frame()
                    batch = ScanBatch()
                if child:
                    break
            else:
                os.close(stack.pop()[0])
        yield batch.format_frame()
    finally:
        for folder, _ in stack:
            os.close(folder)


def _add_entry(batch: ScanBatch, folder: int, name: str, depth: int) -> tuple[int, list[str]] | None:
    """Add the row of an entry; return the descriptor and the names of a folder that has entries."""
    try:
        info = os.lstat(name, dir_fd=folder)
    except FileNotFoundError:
        return None
    except PermissionError:  # the folder was closed during the walk
        batch.add_row(depth, name, None, error="pathRefused")
        return None
    child, target, error = None, "", ""
    kind = stat.S_IFMT(info[0])
    try:
        if kind == stat.S_IFDIR:
            child = _open_folder(folder, name)
        elif kind == stat.S_IFLNK:
            target = os.readlink(name, dir_fd=folder)
    except PermissionError:
        error = "pathRefused"
    except OSError:  # deleted or replaced during the walk
        return None
    batch.add_row(depth, name, info, target, error)
    return child


def _open_folder(parent: int, name: str) -> tuple[int, list[str]] | None:
    folder = os.open(name, FOLDER_FLAGS, dir_fd=parent)
    try:
        if names := sorted_names(folder):
            os.stat(".", dir_fd=folder)  # fails without the permission to search, which its entries need
    except BaseException:
        os.close(folder)
        raise
    if names:
        return folder, names
    os.close(folder)
    return None


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
            *parents, name = split_plain_path(path)
            opened = os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=stack.enter(parents))
            fd = reopen_file(opened, os.O_RDONLY, stat.S_ISREG)
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


def _version(info: os.stat_result) -> tuple[int, int, int]:
    return info.st_size, info.st_mtime_ns, info.st_ctime_ns
