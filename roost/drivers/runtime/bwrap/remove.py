"""Removal of an agent's files: trees of any depth, with folders of any mode, without following links.

An agent could create a tree too deep for recursion. So each folder is first moved up to the top folder, and no path has
more than two parts. Nothing else may write to the tree meanwhile; the container is gone by then.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path

from roost.core import ids


def remove_tree(path: Path) -> None:
    """Remove a file or folder, idempotently. Raises OSError."""
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
    """Remove one entry of the top folder; its folders are moved to the top. Return the number of moves so far."""
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
                os.close(_open(child, folder))  # moving a folder requires write permission on it, which this grants
                moved += 1
                os.rename(child, f"{prefix}-{moved}", src_dir_fd=folder, dst_dir_fd=top)
    finally:
        os.close(folder)
    os.rmdir(name, dir_fd=top)
    return moved


def _open(name: str, parent: int | None) -> int:
    """Open a folder without following a link, and give its owner all rights. Raises NotADirectoryError."""
    handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        if not stat.S_ISDIR(os.fstat(handle).st_mode):
            raise NotADirectoryError(name)
        path = f"/proc/self/fd/{handle}"
        with suppress(PermissionError):  # owned by another user, so only root can remove it anyway
            Path(path).chmod(stat.S_IRWXU)
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    finally:
        os.close(handle)
