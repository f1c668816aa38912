"""Folders below a root: walk, delete, move and make them. The last part of a path is never followed."""

from __future__ import annotations

import os
import stat
from itertools import islice

from .files import MAX_DEPTH, change_lock, entry_kind, open_folder, split_path
from .light_imports import suppress
from .protocol import RequestRefused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from .files import Entry

MAX_FOLDER_ENTRIES = 100_000


def walk_tree(root: str, path: str, after: str, *, recursive: bool) -> Generator[Entry]:
    """Yield path, kind, size, mode and time of all entries of a folder, each folder before its entries.

    Entries of a folder are in the order of their names; `after` is the path of an entry that is skipped with all
    before it. Raises RequestRefused and OSError.
    """
    prefix = "" if path == "." else f"{path}/"
    if after and not after.startswith(prefix):
        raise RequestRefused("pathRefused", "the walk continues after a path in its folder")
    skipped = after.removeprefix(prefix).split("/") if after else []
    yield from _walk_folder(open_folder(root, path), prefix, skipped, recursive, 0)


def delete_path(root: str, path: str, *, recursive: bool) -> None:
    """Delete a file, a link or a folder; one that is not empty only if `recursive`. Raises RequestRefused, OSError."""
    parent, name = open_parent(root, path)
    try:
        if not stat.S_ISDIR(os.lstat(name, dir_fd=parent).st_mode):
            with change_lock:
                os.unlink(name, dir_fd=parent)
        elif recursive:
            _delete_folder(parent, name, 0)
        else:
            os.rmdir(name, dir_fd=parent)
    finally:
        os.close(parent)


def move_path(root: str, source: str, target: str) -> None:
    """Rename a file, a link or a folder; the target must not exist. Raises RequestRefused and OSError."""
    from_folder, from_name = open_parent(root, source)
    try:
        to_folder, to_name = open_parent(root, target, create=True)
        try:
            with suppress(FileNotFoundError):
                os.lstat(to_name, dir_fd=to_folder)
                raise RequestRefused("fileExists", "the target exists")
            with change_lock:
                os.rename(from_name, to_name, src_dir_fd=from_folder, dst_dir_fd=to_folder)
        finally:
            os.close(to_folder)
    finally:
        os.close(from_folder)


def make_folder(root: str, path: str) -> None:
    """Create a folder and its missing parents; an existing one is kept. Raises RequestRefused and OSError."""
    os.close(open_folder(root, path, create=True))


def open_parent(root: str, path: str, *, create: bool = False) -> tuple[int, str]:
    """Open the folder of a path, and return it with the last name. Raises RequestRefused and OSError."""
    *parents, name = split_path(path.rstrip("/"))
    if name in {"", ".", ".."}:
        raise RequestRefused("pathRefused", "the path names no file")
    return open_folder(root, "/".join([".", *parents]), create=create), name


def _walk_folder(folder: int, prefix: str, skipped: list[str], recursive: bool, depth: int) -> Generator[Entry]:
    """Walk an open folder, and close it. `skipped` are the parts of the path after which the walk begins."""
    try:
        for name in sorted_names(folder):
            if skipped and os.fsencode(name) < os.fsencode(skipped[0]):
                continue
            try:
                info = os.lstat(name, dir_fd=folder)
                is_done = bool(skipped) and name == skipped[0]
                if not is_done:
                    mode = info.st_mode
                    yield [f"{prefix}{name}", entry_kind(mode), info.st_size, stat.S_IMODE(mode), info.st_mtime]
                if recursive and stat.S_ISDIR(info.st_mode):
                    child = _open_subfolder(folder, name, depth)
                    yield from _walk_folder(child, f"{prefix}{name}/", skipped[1:] if is_done else [], True, depth + 1)
            except (FileNotFoundError, NotADirectoryError, PermissionError):
                continue  # deleted or replaced during the walk, or closed by the agent
    finally:
        os.close(folder)


def sorted_names(folder: int) -> list[str]:
    """Return the names in a folder in the order of their bytes. Raises RequestRefused and OSError."""
    with os.scandir(folder) as listing:
        names = [entry.name for entry in islice(listing, MAX_FOLDER_ENTRIES + 1)]
    if len(names) > MAX_FOLDER_ENTRIES:
        raise RequestRefused("tooMany", f"a folder has more than {MAX_FOLDER_ENTRIES} entries")
    names.sort(key=None if "".join(names).isascii() else os.fsencode)
    return names


def _open_subfolder(folder: int, name: str, depth: int) -> int:
    if depth >= MAX_DEPTH:
        raise RequestRefused("tooMany", f"more than {MAX_DEPTH} nested folders")
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)


def _delete_folder(parent: int, name: str, depth: int) -> None:
    folder = _open_subfolder(parent, name, depth)
    try:
        for child in os.listdir(folder):  # noqa: PTH208 - pathlib is not loaded here
            with suppress(FileNotFoundError):
                if stat.S_ISDIR(os.lstat(child, dir_fd=folder).st_mode):
                    _delete_folder(folder, child, depth + 1)
                else:
                    os.unlink(child, dir_fd=folder)
    finally:
        os.close(folder)
    with suppress(FileNotFoundError):
        os.rmdir(name, dir_fd=parent)
