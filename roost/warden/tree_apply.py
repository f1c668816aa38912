"""Changes of a tree, which are staged in a folder of its root before the first path changes."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import stat
import sys
import time
from itertools import islice

from .files import SETTLED_NS, change_lock, file_stamp, reopen_file
from .light_imports import suppress
from .protocol import RequestRefused
from .tree_read import FOLDER_FLAGS, STAGING_NAME, FolderStack, split_plain_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_CHANGES, LIST_ENTRIES, DELETE_SECONDS = 1_000_000, 10_000, 300.0
NEW_FOLDER_MODE, USER_ACCESS, MODE_BITS, UMASK = 0o755, 0o700, 0o777, 0o022
STAGED_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
MODES_NAME, MODES_BYTES = "modes", 1_000_000
PATH_FLAGS = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW
GET_FLAGS, SET_FLAGS, TOP_FOLDER = 0x80086601, 0x40086602, 0x00020000  # ioctl_iflags(2)

Parts = list[str]
_libc = ctypes.CDLL(None, use_errno=True)


class StagedChanges:
    """Changes of a tree; files and links wait in its staging folder until `commit` puts everything in place."""

    def __init__(self, root: str, with_stamps: bool = True) -> None:
        self._root, self._tree, self._staging = root, _WritableTree(root), -1
        self._with_stamps = with_stamps
        try:
            self._staging = _open_staging(self._tree.enter([]), self._tree.modes)
            self._tree.record_modes(self._staging)
            self._new = _make_distant_folder(self._staging)
        except BaseException:
            if self._staging >= 0:
                os.close(self._staging)
            self._tree.close()
            raise
        self._expected: list[tuple[Parts, Any]] = []
        self._removals: list[Parts] = []
        self._folders: list[tuple[Parts, int]] = []
        self._staged: list[tuple[Parts, int]] = []  # files and links, with the numbers that are their staged names
        self._files: list[tuple[int, int, int]] = []  # number, mode and size
        self._written: list[tuple[int, int, int]] = []  # versions of the first files
        self._fd, self._remaining = -1, 0
        self._is_restored = False

    def add_changes(self, changes: list[list[Any]]) -> None:
        """Add changes; the content of their files follows. Raises RequestRefused, ValueError and OSError."""
        self._check_complete()
        for kind, path, *values in changes:
            parts = split_plain_path(path)
            if parts[0].startswith(STAGING_NAME):
                raise RequestRefused("pathRefused", "the path is reserved")
            if kind == "expect":
                self._expected.append((parts, values[0]))
            elif kind == "remove":
                self._removals.append(parts)
            elif kind == "folder":
                self._folders.append((parts, int(values[0]) & MODE_BITS))
            elif kind == "file":
                if (size := int(values[1])) < 0:
                    raise RequestRefused("badRequest", "a negative size")
                self._files.append((len(self._staged), int(values[0]) & MODE_BITS, size))
                self._staged.append((parts, len(self._staged)))
            elif kind == "link":
                os.symlink(values[0], str(len(self._staged)), dir_fd=self._new)
                self._staged.append((parts, len(self._staged)))
            else:
                raise RequestRefused("badRequest", "unknown kind of change")
        if max(len(self._expected), len(self._removals) + len(self._folders) + len(self._staged)) > MAX_CHANGES:
            raise RequestRefused("tooMany", f"more than {MAX_CHANGES} changes")
        self._open_next()

    def write(self, data: bytes) -> None:
        """Write content of the files that were added last. Raises RequestRefused and OSError."""
        rest = memoryview(data)
        while rest:
            if not self._remaining:
                raise RequestRefused("badRequest", "content of no file")
            written = os.write(self._fd, rest[: self._remaining])
            self._remaining -= written
            rest = rest[written:]
            self._open_next()

    def commit(self) -> list[tuple[int, int, int] | None]:
        """Put everything in place, durably, and return the stamps of the files, None for one that changed since.

        Without stamps, none are returned.

        Raises RequestRefused and OSError.
        """
        self._check_complete()
        _sync_disk(self._staging)
        if self._with_stamps:
            _let_clock_tick()  # so that a change of a file in its place gives it another time
        with change_lock:
            self._check_expected()
            self._put_in_place()
        self._restore()
        _sync_disk(self._staging)
        if not self._with_stamps:
            return []
        _let_clock_tick()
        return self._stamps()

    def _put_in_place(self) -> None:
        for parts in self._removals:
            with suppress(FileNotFoundError, NotADirectoryError):
                self._remove(self._tree.enter(parts[:-1]), parts[-1])
        self._tree.creates = True
        for parts, mode in sorted(self._folders):
            self._tree.enter(parts)
            self._tree.modes["/".join(parts)] = mode
        for parts, number in sorted(self._staged):
            self._place(str(number), self._tree.enter(parts[:-1]), parts[-1])
        self._tree.creates = False

    def close(self) -> None:
        """Delete what is staged, and restore the modes of folders. Raises RequestRefused and OSError."""
        try:
            if not self._is_restored:
                self._restore()
        finally:
            if self._fd >= 0:
                os.close(self._fd)
            os.close(self._new)
            os.close(self._staging)
            self._tree.close()

    def _check_expected(self) -> None:
        """Refuse to replace or remove what the client does not know."""
        removed = set(map(tuple, self._removals))
        for parts, expected in self._expected:
            try:
                is_same = self._tree.find_present(parts, removed) == expected
            except (OSError, RecursionError):  # it changes right now, or is nested too deeply
                is_same = False
            if not is_same:
                raise RequestRefused("treeChanged", "a path is not as expected")

    def _check_complete(self) -> None:
        if len(self._written) < len(self._files):
            raise RequestRefused("badRequest", "content is missing")

    def _open_next(self) -> None:
        """Close the file that is complete, and open the next one that has content."""
        while not self._remaining:
            if self._fd >= 0:
                self._written.append(_version(os.fstat(self._fd)))
                os.close(self._fd)
                self._fd = -1
            if len(self._written) == len(self._files):
                break
            number, mode, self._remaining = self._files[len(self._written)]
            self._fd = os.open(str(number), STAGED_FLAGS, mode, dir_fd=self._new)
            if mode & UMASK:
                os.fchmod(self._fd, mode)

    def _remove(self, folder: int, name: str) -> None:
        try:
            os.unlink(name, dir_fd=folder)
        except IsADirectoryError:
            _move_folder(folder, name, self._staging)

    def _place(self, staged: str, folder: int, name: str) -> None:
        try:
            os.rename(staged, name, src_dir_fd=self._new, dst_dir_fd=folder)
        except IsADirectoryError:
            _move_folder(folder, name, self._staging)
            os.rename(staged, name, src_dir_fd=self._new, dst_dir_fd=folder)

    def _stamps(self) -> list[tuple[int, int, int] | None]:
        stamps: list[tuple[int, int, int] | None] = []
        settled, folders = time.time_ns() - SETTLED_NS, FolderStack(self._root)
        try:
            for (number, *_), version in zip(self._files, self._written):  # noqa: B905 - of the same length
                parts = self._staged[number][0]
                try:
                    info = os.lstat(parts[-1], dir_fd=folders.enter(parts[:-1]))
                except OSError:  # deleted, replaced or closed since
                    stamps.append(None)
                else:
                    stamps.append(file_stamp(info, settled) if _version(info) == version else None)
        finally:
            folders.close()
        return stamps

    def _restore(self) -> None:
        """Set the modes of folders, and delete the staging folder, which records them."""
        self._tree.set_modes()
        _empty_folder(self._staging)
        with suppress(FileNotFoundError):
            os.rmdir(STAGING_NAME, dir_fd=self._tree.enter([]))
        self._tree.set_root_mode()
        self._is_restored = True


class _WritableTree(FolderStack):
    """Folders that are made, replaced and made writable on the way, and get their modes in the end.

    Modes from before are recorded in the staging folder, from which the next apply takes them after a crash.
    """

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.creates = False
        self.modes: dict[str, int] = {}
        self._record = -1
        self._root_mode = stat.S_IMODE(os.fstat(self.enter([])).st_mode)
        _set_mode(self.enter([]), self._root_mode | USER_ACCESS)

    def record_modes(self, staging: int) -> None:
        self._record = os.open(MODES_NAME, STAGED_FLAGS | os.O_APPEND, 0o600, dir_fd=staging)
        for path, mode in self.modes.items():
            self._record_mode(path, mode)

    def close(self) -> None:
        if self._record >= 0:
            os.close(self._record)
        super().close()

    def open_child(self, folder: int, name: str) -> int:
        try:
            child = super().open_child(folder, name)
        except (FileNotFoundError, NotADirectoryError):
            if not self.creates:
                raise
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)
            os.mkdir(name, NEW_FOLDER_MODE, dir_fd=folder)
            child = super().open_child(folder, name)
        self._allow_changes(child, "/".join([*self.parts, name]))
        return child

    def set_modes(self) -> None:
        """Set the modes that were asked for or changed, of a folder after those below it."""
        for path in sorted(self.modes, reverse=True):
            mode = self.modes.pop(path)
            with suppress(FileNotFoundError, NotADirectoryError):
                _set_mode(FolderStack.enter(self, path.split("/")), mode)

    def set_root_mode(self) -> None:
        if self._root_mode & USER_ACCESS != USER_ACCESS:
            _set_mode(self.enter([]), self._root_mode)

    def _allow_changes(self, folder: int, path: str) -> None:
        mode = stat.S_IMODE(os.fstat(folder).st_mode)
        if mode & USER_ACCESS != USER_ACCESS:
            if path not in self.modes:
                self.modes[path] = mode
                self._record_mode(path, mode)
            _set_mode(folder, mode | USER_ACCESS)

    def _record_mode(self, path: str, mode: int) -> None:
        with suppress(OSError):  # a full disk keeps no change from being put in place
            os.write(self._record, f"{mode:o} {path}\0".encode("utf-8", "surrogateescape"))


def _open_staging(root: int, modes: dict[str, int]) -> int:
    """Return an empty staging folder; of what an interrupted apply left in it, only the recorded modes are taken."""
    with suppress(FileNotFoundError, IsADirectoryError):
        os.unlink(STAGING_NAME, dir_fd=root)
    with suppress(FileExistsError):
        os.mkdir(STAGING_NAME, USER_ACCESS, dir_fd=root)
    folder = os.open(STAGING_NAME, PATH_FLAGS, dir_fd=root)
    try:
        _set_mode(folder, USER_ACCESS)
    except BaseException:
        os.close(folder)
        raise
    opened = reopen_file(folder, os.O_RDONLY | os.O_DIRECTORY, stat.S_ISDIR)
    try:
        modes.update(_read_modes(opened))
        _empty_folder(opened)
    except BaseException:
        os.close(opened)
        raise
    return opened


def _read_modes(staging: int) -> dict[str, int]:
    """Return recorded modes by path; anybody may have written them."""
    try:
        file = reopen_file(os.open(MODES_NAME, os.O_PATH | os.O_NOFOLLOW, dir_fd=staging), os.O_RDONLY, stat.S_ISREG)
    except (OSError, RequestRefused):
        return {}
    try:
        lines = os.read(file, MODES_BYTES).split(b"\0")[:-1]
    finally:
        os.close(file)
    modes: dict[str, int] = {}
    for line in lines:
        mode, _, path = line.decode("utf-8", "surrogateescape").partition(" ")
        with suppress(ValueError, RequestRefused):
            modes.setdefault("/".join(split_plain_path(path)), int(mode, 8) & MODE_BITS)
    return modes


def _make_distant_folder(parent: int) -> int:
    """Make a folder for new files, which ext4 stores far from other folders.

    ext4 uses no inode of a file that was deleted in the last minutes, and checks all of them for each new file nearby,
    so a tree that was just deleted would be restored ten times as slowly.
    """
    with suppress(OSError):  # another file system
        flags = int.from_bytes(fcntl.ioctl(parent, GET_FLAGS, bytes(8)), sys.byteorder) | TOP_FOLDER
        fcntl.ioctl(parent, SET_FLAGS, flags.to_bytes(8, sys.byteorder))
    name = os.urandom(8).hex()  # by which ext4 chooses the place
    os.mkdir(name, USER_ACCESS, dir_fd=parent)
    return os.open(name, PATH_FLAGS, dir_fd=parent)


def _empty_folder(top: int) -> None:
    """Delete all entries of a folder; nested folders move to the top first, so that no depth is too deep."""
    last = time.monotonic() + DELETE_SECONDS
    while names := _first_names(top):
        for name in names:
            if time.monotonic() > last:  # something adds entries all the time
                raise RequestRefused("busy", "the staging folder does not become empty")
            with suppress(FileNotFoundError):
                try:
                    os.unlink(name, dir_fd=top)
                except IsADirectoryError:
                    _delete_folder(top, name)


def _delete_folder(top: int, name: str) -> None:
    _allow_access(top, name)
    folder = os.open(name, FOLDER_FLAGS, dir_fd=top)
    try:
        for child in _first_names(folder):
            try:
                os.unlink(child, dir_fd=folder)
            except IsADirectoryError:
                _move_folder(folder, child, top)
    finally:
        os.close(folder)
    try:
        os.rmdir(name, dir_fd=top)
    except OSError as error:
        if error.errno != errno.ENOTEMPTY:  # the rest is deleted in the next round
            raise


def _first_names(folder: int) -> list[str]:
    with os.scandir(folder) as listing:
        return [entry.name for entry in islice(listing, LIST_ENTRIES)]


def _move_folder(parent: int, name: str, target: int) -> None:
    _allow_access(parent, name)  # a folder that cannot be written cannot get another parent
    os.rename(name, os.urandom(8).hex(), src_dir_fd=parent, dst_dir_fd=target)


def _allow_access(parent: int, name: str) -> None:
    folder = os.open(name, PATH_FLAGS, dir_fd=parent)
    try:
        if os.fstat(folder).st_mode & USER_ACCESS != USER_ACCESS:
            _set_mode(folder, USER_ACCESS)
    finally:
        os.close(folder)


def _set_mode(folder: int, mode: int) -> None:
    """Set the mode of an O_PATH descriptor."""
    if stat.S_IMODE(os.fstat(folder).st_mode) != mode:
        os.chmod(f"/proc/self/fd/{folder}", mode)  # noqa: PTH101 - pathlib is not loaded here


def _sync_disk(fd: int) -> None:
    """Make everything on the file system of a descriptor durable."""
    if _libc.syncfs(fd) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _let_clock_tick() -> None:
    time.sleep(SETTLED_NS / 1e9)


def _version(info: os.stat_result) -> tuple[int, int, int]:
    return info.st_size, info.st_mtime_ns, info.st_ino
