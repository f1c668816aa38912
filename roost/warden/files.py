"""Files confined to a root. Every step is on a descriptor and links are resolved by hand, so nothing that an agent
swaps under the walk leads out. Only regular files are opened: never a FIFO, a device or a socket.
"""

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from itertools import islice

from .protocol import RequestRefused

LINKS, DEPTH, ENTRIES = 40, 256, 10_000

Entry = list[str | int | float]


def open_under(root: str, path: str, *, make: bool = False) -> int:
    """Open `path` under `root` with O_PATH; `make` creates missing folders. Raises RequestRefused and OSError."""
    todo, links = _parts(path)[::-1], 0
    stack = [os.open(root, os.O_PATH | os.O_DIRECTORY)]
    try:
        while todo:
            part = todo.pop()
            if part == "..":
                if len(stack) == 1:
                    raise RequestRefused("pathRefused", "the path leaves its root")
                os.close(os.open(".", os.O_PATH, dir_fd=stack[-1]))  # the parent of a file is none
                os.close(stack.pop())
            elif part not in {"", "."}:
                stack.append(_enter(stack[-1], part, make=make))
                if stat.S_ISLNK(os.fstat(stack[-1]).st_mode):
                    todo += _target(root, stack)[::-1]
                    links += 1
                if links > LINKS or len(stack) > DEPTH:
                    raise RequestRefused("pathRefused", "too many links or folders")
        return stack.pop()
    finally:
        for fd in stack:
            os.close(fd)


def open_file(root: str, path: str, limit: int) -> int:
    """A regular file of at most `limit` bytes, for reading. Raises RequestRefused and OSError."""
    fd = _reopen(open_under(root, path), os.O_RDONLY, stat.S_ISREG)
    if os.fstat(fd).st_size > limit:
        os.close(fd)
        raise RequestRefused("fileTooLarge", f"more than {limit} bytes")
    return fd


def entries(root: str, path: str) -> list[Entry]:
    """Name, kind, size, mode and time of what a folder holds, sorted by name, at most ENTRIES of them."""
    fd = _reopen(open_under(root, path), os.O_RDONLY | os.O_DIRECTORY, stat.S_ISDIR)
    found: list[Entry] = []
    try:
        with os.scandir(fd) as listing:
            for entry in islice(listing, ENTRIES):
                with suppress(FileNotFoundError):
                    info = entry.stat(follow_symlinks=False)
                    found.append([entry.name, _kind(info.st_mode), info.st_size, info.st_mode & 0o7777, info.st_mtime])
    finally:
        os.close(fd)
    return sorted(found)


class AtomicFile:
    """A file that is written beside its place; `commit` renames it there, whatever file or link was there before."""

    def __init__(self, root: str, path: str, mode: int) -> None:
        *parents, self._name = _parts(path)
        if self._name in {"", ".", ".."}:
            raise RequestRefused("pathRefused", "the path names no file")
        folder = open_under(root, "/".join([".", *parents]), make=True)
        self._folder = _reopen(folder, os.O_RDONLY | os.O_DIRECTORY, stat.S_ISDIR)
        self._temporary = f".roost-{os.urandom(8).hex()}"
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            self._fd = os.open(self._temporary, flags, 0o600, dir_fd=self._folder)
        except BaseException:
            os.close(self._folder)
            raise
        os.fchmod(self._fd, mode & 0o777)

    def write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._fd, data) :]

    def commit(self) -> None:
        os.fsync(self._fd)
        os.rename(self._temporary, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        os.fsync(self._folder)

    def close(self) -> None:
        """Leaves no trace of a draft that was not committed."""
        with suppress(FileNotFoundError):
            os.unlink(self._temporary, dir_fd=self._folder)
        os.close(self._fd)
        os.close(self._folder)


def open_log(home: str, name: str, *, rotate: bool) -> int:
    """A regular file in `.roost/logs` to append to; `rotate` first moves the present one aside. Raises as above."""
    folder = open_under(home, ".roost/logs", make=True)
    try:
        if rotate:
            os.rename(name, f"{name}.1", src_dir_fd=folder, dst_dir_fd=folder)
        fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644, dir_fd=folder)
    finally:
        os.close(folder)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise RequestRefused("notAFile", "a log is a regular file")
    return fd


def _parts(path: str) -> list[str]:
    parts = path.split("/")
    if not path or not parts[0] or "\0" in path or len(parts) > DEPTH:
        raise RequestRefused("pathRefused", "a path is relative, not empty and not too deep")
    return parts


def _enter(folder: int, name: str, *, make: bool) -> int:
    try:
        return os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=folder)
    except FileNotFoundError:
        if not make:
            raise
    with suppress(FileExistsError):
        os.mkdir(name, 0o755, dir_fd=folder)
    return os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=folder)


def _target(root: str, stack: list[int]) -> list[str]:
    """The parts of the link on top of the stack, which is taken off; an absolute target starts at the root again."""
    link = stack.pop()
    try:
        target = os.readlink("", dir_fd=link)
    finally:
        os.close(link)
    if target.startswith("/"):
        if target != root and not target.startswith(f"{root}/"):
            raise RequestRefused("pathRefused", "a link leaves the root")
        while len(stack) > 1:
            os.close(stack.pop())
        target = target[len(root) :]
    return target.split("/")


def _reopen(fd: int, flags: int, wanted: Callable[[int], bool]) -> int:
    """Open for real what an O_PATH descriptor stands for, and close that one; looks before it opens."""
    try:
        if not wanted(os.fstat(fd).st_mode):
            raise RequestRefused("notAFile", "not a regular file" if wanted is stat.S_ISREG else "not a folder")
        return os.open(f"/proc/self/fd/{fd}", flags | os.O_NONBLOCK)
    finally:
        os.close(fd)


def _kind(mode: int) -> str:
    names = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link"}
    return names.get(stat.S_IFMT(mode), "other")
