"""Access to files below a root.

Each step of a path is opened by descriptor and links are resolved here, so that a folder which an agent swaps during
the walk never leads out of the root. Only regular files are opened, never a FIFO, a device or a socket.
"""

from __future__ import annotations

from _thread import allocate_lock
from itertools import islice

from .light_imports import encode_name, os, stat, suppress
from .protocol import RequestRefused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MAX_LINKS, MAX_DEPTH, MAX_ENTRIES = 40, 256, 10_000
MAX_FOLDER_ENTRIES = 100_000
SETTLED_NS = 20_000_000  # longer than a tick of the kernel's clock

Entry = list[str | int | float]
Stamp = tuple[int, int, int]

change_lock = allocate_lock()
"""Held while a path gets another file, so that nothing comes between a comparison and the change after it."""


def open_under(root: str, path: str, *, create: bool = False) -> int:
    """Open `path` below `root` with O_PATH; `create` adds missing folders. Raises RequestRefused and OSError."""
    remaining, links = split_path(path)[::-1], 0
    stack = [os.open(root, os.O_PATH | os.O_DIRECTORY)]
    try:
        while remaining:
            part = remaining.pop()
            if part == "..":
                if len(stack) == 1:
                    raise RequestRefused("pathRefused", "the path leaves its root")
                os.close(os.open(".", os.O_PATH, dir_fd=stack[-1]))  # fails for a file, which has no parent folder
                os.close(stack.pop())
            elif part not in {"", "."}:
                stack.append(_open_child(stack[-1], part, create=create))
                if stat.S_ISLNK(os.fstat(stack[-1]).st_mode):
                    remaining += _resolve_link(root, stack)[::-1]
                    links += 1
                if links > MAX_LINKS or len(stack) > MAX_DEPTH:
                    raise RequestRefused("pathRefused", "too many links or folders")
        return stack.pop()
    finally:
        for fd in stack:
            os.close(fd)


def open_file(root: str, path: str, limit: int) -> int:
    """Open a regular file of at most `limit` bytes for reading. Raises RequestRefused and OSError."""
    fd = reopen_file(open_under(root, path), os.O_RDONLY, stat.S_ISREG)
    if os.fstat(fd).st_size > limit:
        os.close(fd)
        raise RequestRefused("fileTooLarge", f"more than {limit} bytes")
    return fd


def open_folder(root: str, path: str, *, create: bool = False) -> int:
    """Open a folder for reading; `create` adds missing ones. Raises RequestRefused and OSError."""
    return reopen_file(open_under(root, path, create=create), os.O_RDONLY | os.O_DIRECTORY, stat.S_ISDIR)


def list_entries(root: str, path: str) -> list[Entry]:
    """Return name, kind, size, mode and time of at most MAX_ENTRIES entries of a folder, sorted by name."""
    fd = open_folder(root, path)
    rows: list[Entry] = []
    try:
        with os.scandir(fd) as listing:
            for entry in islice(listing, MAX_ENTRIES):
                with suppress(FileNotFoundError):
                    rows.append(describe_entry(entry.name, entry.stat(follow_symlinks=False)))
    finally:
        os.close(fd)
    return sorted(rows)


def describe_entry(name: str, info: os.stat_result) -> Entry:
    """Return an entry as the protocol has it: name, kind, size, mode and time."""
    kind = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link"}.get(stat.S_IFMT(info.st_mode), "other")
    return [name, kind, info.st_size, stat.S_IMODE(info.st_mode), info.st_mtime]


def sorted_names(folder: int) -> list[str]:
    """Return the names in a folder in the order of their bytes. Raises RequestRefused and OSError."""
    with os.scandir(folder) as listing:
        names = [entry.name for entry in islice(listing, MAX_FOLDER_ENTRIES + 1)]
    if len(names) > MAX_FOLDER_ENTRIES:
        raise RequestRefused("tooMany", f"a folder has more than {MAX_FOLDER_ENTRIES} entries")
    names.sort(key=None if "".join(names).isascii() else encode_name)
    return names


def file_stamp(info: os.stat_result, settled: int) -> Stamp:
    """Return times of content and status and the inode, which change with the content.

    Two changes in one tick of the clock have the same time. So the second time is 0, which equals no later one,
    unless it is before `settled`.
    """
    changed = info.st_ctime_ns
    return info.st_mtime_ns, changed if changed < settled else 0, info[1]


class AtomicFile:
    """File without a name until `commit` puts it at its path, replacing a file or link."""

    def __init__(self, root: str, path: str, mode: int) -> None:
        self._root, self._path = root, path
        *parents, self._name = split_path(path)
        if self._name in {"", ".", ".."}:
            raise RequestRefused("pathRefused", "the path names no file")
        self._folder = open_folder(root, "/".join([".", *parents]), create=True)
        try:
            self._fd = os.open(".", os.O_WRONLY | os.O_TMPFILE, 0o600, dir_fd=self._folder)
        except BaseException:
            os.close(self._folder)
            raise
        os.fchmod(self._fd, mode & 0o777)

    def write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._fd, data) :]

    def commit(self, expected: list[list[int]] | None = None) -> None:
        """Put the file in place; with `expected` only if the path leads to a file that has one of these stamps.

        Raises RequestRefused and OSError.
        """
        os.fsync(self._fd)
        temporary = f".roost-{os.urandom(8).hex()}"  # because a link cannot replace a file, but a rename can
        os.link(f"/proc/self/fd/{self._fd}", temporary, dst_dir_fd=self._folder, follow_symlinks=True)
        try:
            with change_lock:
                if expected is not None:
                    self._check_present(expected)
                os.rename(temporary, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        except (OSError, RequestRefused):
            os.unlink(temporary, dir_fd=self._folder)
            raise
        os.fsync(self._folder)

    def _check_present(self, expected: list[list[int]]) -> None:
        """Refuse to replace what the client does not know; an empty list is any file."""
        try:
            fd = open_under(self._root, self._path)
        except FileNotFoundError:
            raise RequestRefused("treeChanged", "the file is missing") from None
        info = os.fstat(fd)
        os.close(fd)
        is_known = not expected or [info.st_mtime_ns, info.st_ctime_ns, info.st_ino] in expected
        if not stat.S_ISREG(info.st_mode) or not is_known:
            raise RequestRefused("treeChanged", "the file has changed")

    def close(self) -> None:
        """Close the file; it is gone unless it was committed."""
        os.close(self._fd)
        os.close(self._folder)


def open_log(home: str, name: str, *, rotate: bool) -> int:
    """Open a file in `.roost/logs` for appending; `rotate` first renames the present one. Raises as above."""
    folder = open_under(home, ".roost/logs", create=True)
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


def split_path(path: str) -> list[str]:
    """Return the parts of a path. Raises RequestRefused."""
    parts = path.split("/")
    if not path or not parts[0] or "\0" in path or len(parts) > MAX_DEPTH:
        raise RequestRefused("pathRefused", "a path is relative, not empty and not too deep")
    return parts


def _open_child(folder: int, name: str, *, create: bool) -> int:
    try:
        return os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=folder)
    except FileNotFoundError:
        if not create:
            raise
    with suppress(FileExistsError):
        os.mkdir(name, 0o755, dir_fd=folder)
    return os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=folder)


def _resolve_link(root: str, stack: list[int]) -> list[str]:
    """Remove the link on top of the stack and return the parts of its target; an absolute one resets the stack."""
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


def reopen_file(fd: int, flags: int, is_kind: Callable[[int], bool]) -> int:
    """Open the file of an O_PATH descriptor after a check of its kind, and close the descriptor."""
    try:
        if not is_kind(os.fstat(fd).st_mode):
            raise RequestRefused("notAFile", "not a regular file" if is_kind is stat.S_ISREG else "not a folder")
        return os.open(f"/proc/self/fd/{fd}", flags | os.O_NONBLOCK)
    finally:
        os.close(fd)
