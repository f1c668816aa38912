"""Importer: build the balanced block tree of a file by a profile, from bytes of any size.

It runs at the speed of SHA-256. Raw leaves are hashed incrementally; a node leaf needs its length first, so one chunk
is buffered. Memory: 32 bytes a leaf and the inner nodes (about 50 bytes a leaf).
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from roost.storage.content.unixfs import dagpb
from roost.storage.content.unixfs.cid import DAG_PB, DIGEST, RAW, SHA2_256, Cid
from roost.storage.content.unixfs.dagpb import PBLink, UnixfsData, UnixfsKind
from roost.storage.content.unixfs.profile import ImportProfile


@dataclass(frozen=True, slots=True)
class DagBlock:
    """A stored block: an inner node of a file, or a folder."""

    cid: Cid
    data: bytes


@dataclass(frozen=True)
class DagTree:
    """A whole file or folder.

    cid, size: the root, and how many bytes of content are below it. tsize: the same with all nodes (dag-pb Tsize).
    leaves: for a file, the SHA-256 digests of its leaves in their order, 32 bytes each; leaf n holds the content from
        n times the profile's chunk on.
    nodes: every block that is not a leaf; the root is the last, unless it is a leaf itself.
    """

    cid: Cid
    size: int
    tsize: int
    leaves: bytes = b""
    nodes: Sequence[DagBlock] = ()


@dataclass(frozen=True, slots=True)
class _Subtree:
    """A finished subtree: its root, its content and all its blocks in bytes."""

    cid: Cid
    size: int
    tsize: int


class UnixfsImporter:
    """`update` with the bytes of one file, then `finish` once."""

    def __init__(self, profile: ImportProfile) -> None:
        self._profile = profile
        self._leaves = bytearray()
        self._nodes: list[DagBlock] = []
        self._levels: list[list[_Subtree]] = [[]]
        self._size = 0
        self._filled = 0
        self._hash = hashlib.sha256()
        self._held: list[bytes] = []

    @property
    def leaves(self) -> bytes:
        """Digests of the finished leaves, from which `resume` continues."""
        return bytes(self._leaves)

    @classmethod
    def resume(cls, profile: ImportProfile, leaves: bytes) -> "UnixfsImporter":
        """Return an importer after these complete leaves; update it with the bytes that follow them."""
        self = cls(profile)
        for at in range(0, len(leaves), DIGEST):
            self._leaf(leaves[at : at + DIGEST], profile.chunk)
        return self

    def update(self, data: bytes | bytearray | memoryview) -> None:
        with memoryview(data) as view:
            at = 0
            while at < len(view):
                if self._filled == self._profile.chunk:
                    self._end_leaf()
                part = view[at : at + self._profile.chunk - self._filled]
                if self._profile.raw:
                    self._hash.update(part)
                else:
                    self._held.append(bytes(part))
                self._filled += len(part)
                at += len(part)

    def finish(self, mode: int | None = None) -> DagTree:
        """Return the tree; `mode` are the permissions of the file (`0o755`), None stores none.

        A leaf cannot have a mode, so the single leaf of a small file gets a node around it, and an empty file is a node
        without a leaf.
        """
        if mode is not None and self._size + self._filled == 0:
            self._levels[0] = []
        elif self._filled or not self._leaves:
            self._end_leaf()
        level = 0
        while level + 1 < len(self._levels) or len(self._levels[level]) > 1 or (mode is not None and level == 0):
            self._close(level, mode if level + 1 == len(self._levels) else None)
            level += 1
        root = self._levels[level][0]
        return DagTree(root.cid, root.size, root.tsize, bytes(self._leaves), self._nodes)

    def _end_leaf(self) -> None:
        if not self._profile.raw:
            before, after = dagpb.leaf_frame(self._filled)
            self._hash.update(b"".join((before, *self._held, after)))
            self._held.clear()
        self._leaf(self._hash.digest(), self._filled)
        self._hash = hashlib.sha256()
        self._filled = 0

    def _leaf(self, digest: bytes, length: int) -> None:
        self._leaves += digest
        self._size += length
        codec, stored = RAW, length
        if not self._profile.raw:
            codec, stored = DAG_PB, length + sum(map(len, dagpb.leaf_frame(length)))
        self._add(0, _Subtree(Cid(self._profile.version, codec, SHA2_256, digest), length, stored))

    def _add(self, level: int, part: _Subtree) -> None:
        """Add a subtree; close a full node only when one more follows, because it may be the root."""
        if level == len(self._levels):
            self._levels.append([])
        if len(self._levels[level]) == self._profile.width:
            self._close(level)
        self._levels[level].append(part)

    def _close(self, level: int, mode: int | None = None) -> None:
        parts = self._levels[level]
        self._levels[level] = []
        sizes = [part.size for part in parts]
        links = [PBLink(part.cid, "", part.tsize) for part in parts]
        data = dagpb.encode_node(links, UnixfsData(UnixfsKind.FILE, size=sum(sizes), sizes=sizes, mode=mode))
        block = DagBlock(Cid.for_block(DAG_PB, data, self._profile.version), data)
        self._nodes.append(block)
        self._add(level + 1, _Subtree(block.cid, sum(sizes), len(data) + sum(part.tsize for part in parts)))


def build_file(profile: ImportProfile, content: bytes | memoryview, mode: int | None = None) -> DagTree:
    """Build the tree of a file in memory, as `UnixfsImporter` does."""
    if profile.raw and mode is None and len(content) <= profile.chunk:  # small files need no more than their hash
        leaf = Cid.for_block(RAW, content, profile.version)
        return DagTree(leaf, len(content), len(content), leaf.digest, [])
    importer = UnixfsImporter(profile)
    importer.update(content)
    return importer.finish(mode)


def build_link(profile: ImportProfile, target: bytes, mode: int | None = None) -> DagTree:
    """Build a symbolic link to any path, which nothing resolves; its size is that of the path in bytes."""
    data = dagpb.encode_node((), UnixfsData(UnixfsKind.SYMLINK, target, mode=mode))
    block = DagBlock(Cid.for_block(DAG_PB, data, profile.version), data)
    return DagTree(block.cid, len(target), len(data), nodes=(block,))
