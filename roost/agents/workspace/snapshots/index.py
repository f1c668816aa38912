"""Index of a workspace: what each path held when it was last read, so that unchanged files are not read again. Pure."""

import base64
import json
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from roost.agents.workspace.snapshots.diff import TreeDiff
from roost.storage.content.unixfs.cid import Cid
from roost.warden_client.changes import ExpectEntry

_FORMAT = 2
_CID_BYTES = 36
"""Length of every binary CID in a snapshot: version 1, SHA-256."""

EntryKind = Literal["file", "folder", "link"]
_FOLDER, _LINK = "fo", "li"
_KINDS: Mapping[str, EntryKind] = {"fi": "file", _FOLDER: "folder", _LINK: "link"}
Stamp = tuple[int, int, int]
"""Times of modification and status change in nanoseconds, and the inode: it changes with the content."""


class IndexedEntry(NamedTuple):
    """A file, folder or link. cid: binary, of its UnixFS tree, as tsize is. pack: the pack with its blocks.

    mode: permissions of a file or folder. stamp: None if the entry must be read again. target: of a link.
    """

    kind: EntryKind
    cid: bytes
    size: int
    tsize: int
    pack: str
    mode: int = 0
    stamp: Stamp | None = None
    target: str = ""

    def is_current(self, stamp: Stamp, size: int, mode: int) -> bool:
        """Return whether a file is still as it was when it was read."""
        return self.stamp == stamp and self.size == size and self.mode == mode and self.kind == "file"

    def parse_cid(self) -> Cid:
        return Cid.from_bytes(self.cid)


WorkspaceIndex = Mapping[str, IndexedEntry]
"""Entries by path; bytes of a path that are not UTF-8 are lone surrogates. The root is the empty path."""


def settled_stamp(stamp: Stamp) -> Stamp | None:
    """Return the stamp unless the file changed just before: then it may change again at the same time of the clock.

    The warden tells so by the time 0.
    """
    return stamp if stamp[1] else None


def encode_index(index: WorkspaceIndex) -> bytes:
    """Encode an index column by column; 10,000 entries take 0.5 MB."""
    rows = list(zip(*index.values(), strict=True)) or [()] * len(IndexedEntry._fields)
    kinds, cids, sizes, tsizes, packs, modes, stamps, targets = rows
    numbers = {pack: number for number, pack in enumerate(dict.fromkeys(packs))}
    columns = [
        list(index),
        [kind[:2] for kind in kinds],
        base64.b64encode(b"".join(cids)).decode(),
        sizes,
        tsizes,
        [numbers[pack] for pack in packs],
        modes,
        stamps,
        targets,
    ]
    return zlib.compress(json.dumps([_FORMAT, list(numbers), columns], separators=(",", ":")).encode(), 1)


def decode_index(data: bytes | None) -> WorkspaceIndex:
    """Decode an index; one of another format is empty, so that everything is read again."""
    packs, columns = _decode_columns(data)
    paths, kinds, encoded, sizes, tsizes, numbers, modes, stamps, targets = columns
    joined = base64.b64decode(encoded)
    rows = zip(
        [_KINDS[kind] for kind in kinds],
        [joined[at : at + _CID_BYTES] for at in range(0, len(joined), _CID_BYTES)],
        sizes,
        tsizes,
        [packs[number] for number in numbers],
        modes,
        [stamp and tuple(stamp) for stamp in stamps],
        targets,
        strict=True,
    )
    return dict(zip(paths, map(IndexedEntry._make, rows), strict=True))


@dataclass(frozen=True)
class CommittedFiles:
    """What the paths of an index hold. `files` and `size` count files and links, and their bytes."""

    _rows: Mapping[str, tuple[str, int, Sequence[int] | None, str]] = field(default_factory=dict[str, Any])
    files: int = 0
    size: int = 0
    is_settled: bool = True
    """Whether the index has the stamps of all files."""

    @classmethod
    def decode(cls, data: bytes | None) -> "CommittedFiles":
        """Decode an index, of which only what a push needs becomes objects."""
        _, (paths, kinds, _, sizes, *_, stamps, targets) = _decode_columns(data)
        rows = dict(zip(paths, zip(kinds, sizes, stamps, targets, strict=True), strict=True))
        files = [row for row in rows.values() if row[0] != _FOLDER]
        is_settled = all(stamp or kind == _LINK for kind, _, stamp, _ in files)
        return cls(rows, len(files), sum(size for _, size, *_ in files), is_settled)

    def expect(self, paths: Iterable[str]) -> Sequence[ExpectEntry]:
        """Return that paths are as the index has them; a file without a stamp never is."""
        rows = ((path, self._rows.get(path, ("fo", 0, None, ""))) for path in paths)
        return [ExpectEntry(path, _expected_entry(kind, stamp, target)) for path, (kind, _, stamp, target) in rows]

    def list_sizes_without(self, paths: Collection[str], is_left_out: Callable[..., bool]) -> Sequence[int]:
        """Return the sizes of all files and links but those at `paths` and those that a commit leaves out."""
        rows = ((path, *row) for path, row in self._rows.items() if path not in paths and _KINDS[row[0]] != "folder")
        return [size for path, kind, size, *_ in rows if not is_left_out(path, is_link=_KINDS[kind] == "link")]


def _expected_entry(kind: str, stamp: Sequence[int] | None, target: str) -> Stamp | str | None:
    match _KINDS[kind]:
        case "folder":
            return None
        case "link":
            return target
        case "file":
            modified, changed, inode = stamp or (0, 0, 0)
            return modified, changed, inode


def _decode_columns(data: bytes | None) -> tuple[Sequence[str], Sequence[Any]]:
    """Return the packs and the columns, which are empty for another format."""
    decoded: tuple[int, Sequence[str], Sequence[Any]] = (
        (0, [], []) if data is None else json.loads(zlib.decompress(data))
    )
    version, packs, columns = decoded
    return (packs, columns) if version == _FORMAT else ([], [[], [], "", [], [], [], [], [], []])


def compare_indexes(old: WorkspaceIndex, new: WorkspaceIndex) -> TreeDiff:
    """Compare the files and links of two indexes."""
    added: list[str] = []
    changed: list[str] = []
    removed = [path for path in old.keys() - new.keys() if old[path].kind != "folder"]
    for path, after in new.items():
        before = old.get(path)
        if before is after:  # most are, which makes this fast
            continue
        if before is None or before.kind == "folder":
            if after.kind != "folder":
                added.append(path)
        elif after.kind == "folder":
            removed.append(path)
        elif (before.kind, before.cid) != (after.kind, after.cid):
            changed.append(path)
    return TreeDiff(added=sorted(added), removed=sorted(removed), changed=sorted(changed))
