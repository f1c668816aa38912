"""Metadata of all entries below a root, in compact batches."""

from __future__ import annotations

import os
import stat
import time

from .files import MAX_DEPTH, SETTLED_NS, file_stamp
from .light_imports import format_json
from .protocol import RequestRefused
from .tree import sorted_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

MAX_TREE_ENTRIES = 1_000_000
BATCH_CHARACTERS, ROW_CHARACTERS = 160_000, 80  # JSON escapes need up to six times as much, which a frame holds
STAGING_NAME = ".roost-staging"
FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK


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
