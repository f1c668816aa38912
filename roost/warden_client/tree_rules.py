"""What a workspace can carry, the same for every way in: pushes, archives, templates, resets.

A tree that passes can be written by the warden's `apply`, and its `scan` and a snapshot find the same tree. Names are
any bytes but `/` and NUL, so upper and lower case differ, as on Linux.
"""

from collections import Counter
from collections.abc import Collection

from roost.core.problem import InvalidInput
from roost.warden_client.tree import STAGING_NAME

MAX_NAME_BYTES = 255
MAX_PATH_BYTES = 4_084
"""PATH_MAX of Linux without `/workspace/`: programs of an agent cannot open a longer path at once."""
MAX_PARTS = 256
MAX_LINK_BYTES = 4_095
MAX_FOLDER_ENTRIES, MAX_TREE_ENTRIES = 100_000, 1_000_000
_MAX_ALL_PATHS = 256 * 1024**2
"""Characters of all paths of a tree, which the server has in memory when it writes the tree."""
_READABLE, _SEARCHABLE = 0o400, 0o100


class TreeRefused(InvalidInput):
    """A tree that no workspace can carry; the message names the path and says why."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path[:200]!a} {reason}")
        self.reason = reason


class TreeRules:
    """Checks the entries of one tree, in any order that has a folder before its entries.

    files: top names that must be regular files if they are there. max_path_bytes: None for trees of this server's own,
    which programs can make deeper step by step.
    """

    def __init__(self, files: Collection[str] = (), max_path_bytes: int | None = MAX_PATH_BYTES) -> None:
        self._files = files
        self._max_path_bytes = max_path_bytes
        self._kinds: dict[str, str] = {"": "folder"}
        self._closed = set[str]()
        self._counts = Counter[str]()
        self._size = 0

    def check_entry(self, path: str, kind: str, *, mode: int = 0o755, target_size: int = 1) -> None:
        """Check an entry: a `file` or `folder` with its permissions, or a `link` with the size of its target.

        Raises TreeRefused.
        """
        if reason := self._find_fault(path, kind, mode, target_size):
            raise TreeRefused(path, reason)

    @staticmethod
    def check_target(path: str, target: bytes) -> None:
        """Check the target of a link, which may lead anywhere. Raises TreeRefused."""
        if b"\0" in target:
            raise TreeRefused(path, "is a symbolic link whose target has a NUL byte")

    def _find_fault(self, path: str, kind: str, mode: int, target_size: int) -> str | None:
        top = path.partition("/")[0]
        if reason := self._find_path_fault(path):
            return reason
        if top.startswith(STAGING_NAME):
            return "is a reserved name"
        if top in self._files and (top != path or kind != "file"):
            return "is not a regular file" if top == path else f"is below {top}, which must be a regular file"
        if kind == "link" and not 0 < target_size <= MAX_LINK_BYTES:
            return f"is a symbolic link of {target_size:,} bytes; it must have 1 to {MAX_LINK_BYTES:,}"
        if kind != "link" and not mode & _READABLE:
            return "cannot be read by its owner"
        return self._place(path, kind, mode)

    def _find_path_fault(self, path: str) -> str | None:
        parts = path.split("/")
        if "\0" in path or not {"", ".", ".."}.isdisjoint(parts):
            return "is no path of a file"
        try:
            names = [part.encode(errors="surrogateescape") for part in parts]
        except UnicodeEncodeError:
            return "is no path of a file"
        limit = self._max_path_bytes
        size = sum(map(len, names)) + len(names) - 1
        if len(names) > MAX_PARTS or max(map(len, names)) > MAX_NAME_BYTES or (limit is not None and size > limit):
            limits = f"{MAX_NAME_BYTES} bytes in a name, {MAX_PARTS} parts and {MAX_PATH_BYTES:,} bytes in all"
            return f"is too long; a path has at most {limits}"
        return None

    def _place(self, path: str, kind: str, mode: int) -> str | None:
        """Add an entry, and the folders around it that no list names; return why there is no place for it."""
        if path in self._kinds and not self._kinds[path] == kind == "folder":
            return "is there twice, or as a file and a folder"
        ancestor = path.rpartition("/")[0]
        while ancestor not in self._kinds:  # folders that no list names are open
            ancestor = ancestor.rpartition("/")[0]
        if ancestor in self._closed:
            return "is in a folder that its owner cannot open"
        if kind == "folder" and not mode & _SEARCHABLE:
            if self._counts[path]:
                return "has entries that its owner cannot open"
            self._closed.add(path)
        at, has_space = path, True
        while at not in self._kinds:
            self._kinds[at] = kind if at == path else "folder"
            self._size += len(at)
            at = at.rpartition("/")[0]
            self._counts[at] += 1
            has_space = has_space and self._counts[at] <= MAX_FOLDER_ENTRIES
        if at != path and self._kinds[at] != "folder":
            return "is below a file or link"
        if has_space and len(self._kinds) <= MAX_TREE_ENTRIES and self._size <= _MAX_ALL_PATHS:
            return None
        return f"is one too many: a folder has at most {MAX_FOLDER_ENTRIES:,} entries, a tree {MAX_TREE_ENTRIES:,}"
