"""Open folders along a path, so that many paths in their order are reached with few calls. No link is followed."""

from __future__ import annotations

import os
import stat

from .files import MAX_DEPTH
from .protocol import RequestRefused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

MAX_NAME_BYTES = 255


class FolderStack:
    """Descriptors (O_PATH) of a root and of the folders on the way to the one that was entered last."""

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
