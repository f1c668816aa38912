"""Changes of a tree as the kernel reports them (inotify(7)). No link is followed."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from _thread import allocate_lock

from .files import MAX_DEPTH
from .light_imports import suppress
from .protocol import RequestRefused
from .tree_read import FOLDER_FLAGS, STAGING_NAME, FolderStack

MAX_FOLDERS, MAX_PATH_CHARACTERS = 16_384, 4096
MAX_PATHS, MAX_CHARACTERS = 10_000, 150_000  # of a batch
MAX_READS = 64
EVENT = struct.Struct("iIII")
EVENT_BYTES = 64 * 1024

IN_MODIFY, IN_ATTRIB, IN_CLOSE_WRITE, IN_MOVED_FROM, IN_MOVED_TO = 0x2, 0x4, 0x8, 0x40, 0x80
IN_CREATE, IN_DELETE, IN_Q_OVERFLOW, IN_IGNORED, IN_ISDIR = 0x100, 0x200, 0x4000, 0x8000, 0x40000000
IN_ONLYDIR, IN_EXCL_UNLINK = 0x01000000, 0x04000000
CHANGES = IN_MODIFY | IN_ATTRIB | IN_CLOSE_WRITE | IN_MOVED_FROM | IN_MOVED_TO | IN_CREATE | IN_DELETE
APPEARED, VANISHED = IN_ATTRIB | IN_MOVED_TO | IN_CREATE, IN_MOVED_FROM | IN_DELETE

Batch = tuple[list[str], bool]
_libc = ctypes.CDLL(None, use_errno=True)


class TreeWatch:
    """Watches of all folders below a root; one thread may close it while another one reads."""

    def __init__(self, root: str) -> None:
        self._root, self._lock = root, allocate_lock()
        self._paths: dict[int, str] = {}  # of folders, by their watches
        self._watched: set[str] = set()
        self.fd = _check(_libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        try:
            self._watch_tree("")
        except BaseException:
            os.close(self.fd)
            raise

    def read_changes(self) -> Batch | None:
        """Return the paths that changed, and whether they are all; None if nothing changed.

        Raises RequestRefused if the tree can no longer be watched.
        """
        changed = _ChangedPaths()
        with self._lock:
            for _ in range(MAX_READS):
                if self.fd < 0 or not (events := self._read_events()):
                    break
                self._follow_events(events, changed)
        if not changed.is_complete:
            return [], False
        return (sorted(changed.paths), True) if changed.paths else None

    def close(self) -> None:
        with self._lock:
            os.close(self.fd)
            self.fd = -1

    def _read_events(self) -> bytes:
        try:
            return os.read(self.fd, EVENT_BYTES)
        except BlockingIOError:
            return b""

    def _follow_events(self, events: bytes, changed: _ChangedPaths) -> None:
        position = 0
        while position < len(events):
            watch, mask, _, length = EVENT.unpack_from(events, position)
            position += EVENT.size + length
            if mask & IN_Q_OVERFLOW:
                changed.is_complete = False
                return self._restart()
            if mask & IN_IGNORED:
                self._forget(watch)
            elif watch in self._paths:
                name = os.fsdecode(events[position - length : position].rstrip(b"\0"))
                folder = self._paths[watch]
                if name and (folder or not name.startswith(STAGING_NAME)):
                    path = f"{folder}/{name}" if folder else name
                    changed.add(path)
                    self._follow_folder(path, mask)
        return None

    def _restart(self) -> None:
        """Watch the tree from the start, because events were lost."""
        os.close(self.fd)
        self._paths, self._watched = {}, set()
        self.fd = -1
        self.fd = _check(_libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        self._watch_tree("")

    def _follow_folder(self, path: str, mask: int) -> None:
        if mask & IN_ISDIR and mask & VANISHED and path in self._watched:
            for watch, folder in [*self._paths.items()]:
                if folder == path or folder.startswith(f"{path}/"):
                    self._forget(watch)
                    _libc.inotify_rm_watch(self.fd, watch)  # fails if the folder is deleted, which ends its watch
        elif mask & IN_ISDIR and mask & APPEARED and path not in self._watched:
            self._watch_tree(path)

    def _forget(self, watch: int) -> None:
        path = self._paths.pop(watch, None)
        if path == "":
            raise RequestRefused("watchRefused", "the root was deleted")
        if path is not None:
            self._watched.discard(path)

    def _watch_tree(self, top: str) -> None:
        """Watch a folder and those below it; one that vanishes or cannot be read is left out."""
        stack, waiting = FolderStack(self._root), [top]
        try:
            while waiting:
                path = waiting.pop()
                parts = path.split("/") if path else []
                if len(parts) >= MAX_DEPTH or len(path) > MAX_PATH_CHARACTERS or len(self._paths) >= MAX_FOLDERS:
                    raise RequestRefused("watchRefused", f"more than {MAX_FOLDERS} folders, or a path is too long")
                with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
                    waiting += self._watch_folder(stack.enter(parts), path)
        finally:
            stack.close()
        if "" not in self._watched:
            raise RequestRefused("watchRefused", "the root cannot be read")

    def _watch_folder(self, folder: int, path: str) -> list[str]:
        source = f"/proc/self/fd/{folder}".encode()
        watch = _check(_libc.inotify_add_watch(self.fd, source, CHANGES | IN_ONLYDIR | IN_EXCL_UNLINK))
        self._paths[watch] = path
        self._watched.add(path)
        readable = os.open(".", FOLDER_FLAGS, dir_fd=folder)
        try:
            with os.scandir(readable) as listing:
                names = [entry.name for entry in listing if entry.is_dir(follow_symlinks=False)]
        finally:
            os.close(readable)
        if not path:
            return [name for name in names if not name.startswith(STAGING_NAME)]
        return [f"{path}/{name}" for name in names]


class _ChangedPaths:
    """Changed paths of bounded number and length; beyond that they are not complete."""

    def __init__(self) -> None:
        self.paths: set[str] = set()
        self.is_complete = True
        self._characters = 0

    def add(self, path: str) -> None:
        if self.is_complete and path not in self.paths:
            self.paths.add(path)
            self._characters += len(path)
            self.is_complete = len(self.paths) <= MAX_PATHS and self._characters <= MAX_CHARACTERS


def _check(result: int) -> int:
    """Return the result of a call. Raises RequestRefused at a limit of the kernel, and OSError."""
    if result >= 0:
        return result
    number = ctypes.get_errno()
    if number in {errno.ENOSPC, errno.EMFILE, errno.ENOSYS, errno.ENOMEM}:
        raise RequestRefused("watchRefused", os.strerror(number))
    raise OSError(number, os.strerror(number))


def has_shared_mapping(root: str) -> bool:
    """Return whether a process has, or may have, a file below the root mapped to write to it (proc_pid_maps(5)).

    Engines map their databases, which are in the home and tell nothing about the workspace.
    """
    prefix = os.fsencode(os.path.realpath(root)) + b"/"
    for pid in filter(str.isdecimal, os.listdir("/proc")):  # noqa: PTH208 - pathlib is not loaded here
        try:
            with suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{pid}/maps", "rb") as maps:  # noqa: PTH123 - as above
                if any(_is_shared_file(line, prefix) for line in maps):
                    return True
        except OSError:
            if not _is_of_other_user(pid):  # it hides its memory
                return True
    return False


def _is_of_other_user(pid: str) -> bool:
    """Return whether a process has not our user in any role: a carrier of the server's, which no program can become."""
    with suppress(OSError), open(f"/proc/{pid}/status") as status:  # noqa: PTH123 - as above
        return any(line.startswith("Uid:") and str(os.getuid()) not in line.split() for line in status)
    return False


def _is_shared_file(line: bytes, prefix: bytes) -> bool:
    permissions = line[line.find(b" ") + 1 :][:4]
    if permissions[1:2] != b"w" or permissions[3:4] != b"s":
        return False
    name = line.rstrip().split(None, 5)[5:]
    return bool(name) and name[0].startswith(prefix)
