"""Removal of a tree that an agent made: of any depth, with folders of any mode, and without following a link.

Recursion would end at a depth that an agent chooses. So each folder is moved up beside the top first, and no path
ever has more than two parts. Nothing else may write to the tree meanwhile; its container is gone by then.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path

from roost.core import ids


def remove_tree(path: Path) -> None:
    """Idempotent. Raises OSError."""
    try:
        top = _open(str(path), None)
    except FileNotFoundError:
        return
    except NotADirectoryError:
        path.unlink()
        return
    try:
        prefix = ids.new_host_label()
        moved = 0
        while names := os.listdir(top):  # noqa: PTH208 - a descriptor, not a path
            for name in names:
                moved = _empty(top, name, prefix, moved)
    finally:
        os.close(top)
    path.rmdir()


def _empty(top: int, name: str, prefix: str, moved: int) -> int:
    """Remove one entry of the top; folders in it take its place."""
    try:
        folder = _open(name, top)
    except NotADirectoryError:
        os.unlink(name, dir_fd=top)
        return moved
    try:
        for child in os.listdir(folder):  # noqa: PTH208 - as above
            try:
                os.unlink(child, dir_fd=folder)
            except (IsADirectoryError, PermissionError):
                os.close(_open(child, folder))  # to move a folder takes the right to write in it
                moved += 1
                os.rename(child, f"{prefix}-{moved}", src_dir_fd=folder, dst_dir_fd=top)
    finally:
        os.close(folder)
    os.rmdir(name, dir_fd=top)
    return moved


def _open(name: str, parent: int | None) -> int:
    """The folder, opened without following a link, with all rights of its owner. Raises NotADirectoryError."""
    handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        if not stat.S_ISDIR(os.fstat(handle).st_mode):
            raise NotADirectoryError(name)
        itself = f"/proc/self/fd/{handle}"
        with suppress(PermissionError):  # another's, which only root can remove anyway
            Path(itself).chmod(stat.S_IRWXU)
        return os.open(itself, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    finally:
        os.close(handle)
