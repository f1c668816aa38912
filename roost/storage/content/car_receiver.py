"""CAR import: an uploaded CAR is stored unchanged as one pack, if it is one complete file or folder.

Every block is checked against its CID while it streams in. A CAR with a missing block, a wrong size or any number of
roots other than one is rejected. Blocks that the root does not reach are bytes of the pack and never content.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from roost.core import clock
from roost.core.db import Connection, Database
from roost.drivers.blob.contract import BlobWriter
from roost.storage.content import store
from roost.storage.content.model import MAX_FILE_DEPTH, BlockLocation, BlockRow, Pack
from roost.storage.content.receiver import PackReceiver
from roost.storage.content.unixfs import car, dagpb
from roost.storage.content.unixfs.cid import DAG_PB, IDENTITY, RAW, Cid
from roost.storage.content.unixfs.dagpb import UnixfsKind
from roost.storage.content.unixfs.errors import MalformedContent

MAX_BLOCKS = 250_000
MAX_LINKS = 500_000
"""Limits of one CAR, which bound memory; at 256 KiB a block they allow 61 GiB."""
_MOST_FILES, _MOST_BYTES = 2**31 - 1, 2**53 - 1  # integers that JSON clients represent exactly
_FOLDERS = frozenset({UnixfsKind.DIRECTORY, UnixfsKind.SHARD})
_FILES = frozenset({UnixfsKind.FILE, UnixfsKind.RAW})


@dataclass(frozen=True)
class CarContents:
    """The root of a CAR, its content in bytes (of all files of a folder), and its number of files."""

    cid: Cid
    kind: UnixfsKind
    size: int
    files: int


@dataclass(frozen=True, slots=True)
class _NodeSummary:
    """Links and sizes of a node, in bytes; `link_sizes` has the content below each link of a file."""

    kind: UnixfsKind
    data_size: int
    declared_size: int | None
    links: Sequence[Cid]
    link_sizes: Sequence[int]


@dataclass(frozen=True, slots=True)
class _SubtreeSummary:
    """Totals of a block and everything below it."""

    size: int
    files: int = 1
    depth: int = 0


class CarReceiver(PackReceiver):
    """A CAR upload from `ContentService.receive_car`: `write` the CAR, `finish` it, then `commit` once."""

    def __init__(self, db: Database, writer: BlobWriter, key: str) -> None:
        super().__init__(db, writer, key, self._index_blocks)
        self._reader = car.CarReader()
        self._rows: dict[Cid, BlockRow] = {}
        self._nodes: dict[Cid, _NodeSummary] = {}
        self._link_count = 0
        self._subtrees: dict[Cid, _SubtreeSummary] = {}

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        """Write the next bytes of the CAR. Raises MalformedContent, BlobStoreFailed."""
        self.size += len(data)
        await self._pipeline.add(data)

    async def flush(self) -> None:
        """Wait until all bytes are indexed and written. Raises MalformedContent, BlobStoreFailed."""
        await self._pipeline.flush()

    async def finish(self) -> CarContents:
        """Verify that the CAR is complete and return its contents. Raises MalformedContent."""
        await self.flush()
        return await asyncio.to_thread(self._verify_contents)

    def find_row(self, cid: Cid) -> BlockRow | None:
        """Return the location of a received block."""
        return self._rows.get(cid.v1())

    def publish_pack(self, connection: Connection, root: Cid | None = None) -> None:
        """Make the pack content in the caller's transaction: all of it, or what is below `root`; a holder follows.

        `finish` and `commit_blob` come first.
        """
        cids = self._subtrees if root is None else self._list_below(root.v1())
        rows = [self._rows[cid] for cid in cids if cid.hash != IDENTITY]
        store.add_pack(connection, Pack(self.pack_id, self.size, clock.utc_now()), rows, ())

    def _list_below(self, root: Cid) -> set[Cid]:
        found, waiting = {root}, [root]
        while waiting:
            new = {link for link in self._child_links(waiting.pop()) if link not in found}
            found |= new
            waiting += new
        return found

    def _index_blocks(self, piece: memoryview) -> None:
        for block in self._reader.feed(piece):
            cid = block.cid.v1()
            if cid in self._rows:
                continue
            if len(self._rows) == MAX_BLOCKS:
                raise MalformedContent(f"The CAR has more than {MAX_BLOCKS:,} blocks")
            self._rows[cid] = BlockRow(cid, BlockLocation.SLICE, block.offset, len(block.data))
            if cid.codec == DAG_PB:
                self._nodes[cid] = self._summarize_node(block.data)

    def _summarize_node(self, block: bytes) -> _NodeSummary:
        node = dagpb.decode_node(block)
        links = [link.cid.v1() for link in node.links]
        self._link_count += len(links)
        if self._link_count > MAX_LINKS:
            raise MalformedContent(f"The CAR has more than {MAX_LINKS:,} links")
        unixfs = node.unixfs
        sizes = unixfs.sizes[: len(links) + 1]  # one size too many is enough to reject the file
        return _NodeSummary(unixfs.kind, len(unixfs.data), unixfs.size, links, sizes)

    def _verify_contents(self) -> CarContents:
        self._reader.finish()
        roots = self._reader.roots or ()
        if len(roots) != 1:
            raise MalformedContent(f"The CAR has {len(roots)} roots; it must have one")
        root = roots[0].v1()
        if root.hash == IDENTITY:  # it has its bytes itself, so that no block is left to keep
            raise MalformedContent(f"The root of a CAR cannot be an identity CID, which has no block: {roots[0]}")
        if root not in self._rows:
            raise MalformedContent(f"The CAR does not have the block of its root, {roots[0]}")
        top = self._summarize_dag(root)
        kind = self._nodes[root].kind if root in self._nodes else UnixfsKind.RAW
        if kind not in _FOLDERS | _FILES:
            raise MalformedContent("The root of the CAR is neither a file nor a folder")
        if top.size > _MOST_BYTES:
            raise MalformedContent("The content of the CAR is larger than 2^53 - 1 bytes")
        return CarContents(roots[0], kind, top.size, top.files)

    def _summarize_dag(self, root: Cid) -> _SubtreeSummary:
        """Summarize all blocks below the root, children first; hash links cannot form a cycle."""
        waiting = [root]
        while waiting:
            cid = waiting[-1]
            if cid in self._subtrees:  # checked first, so that each node is visited at most twice
                waiting.pop()
            elif missing := [link for link in self._child_links(cid) if link not in self._subtrees]:
                waiting += missing
            else:
                self._subtrees[cid] = self._summarize_subtree(cid)
        return self._subtrees[root]

    def _child_links(self, cid: Cid) -> Sequence[Cid]:
        if cid.codec not in {RAW, DAG_PB}:
            raise MalformedContent(f"The CAR has a link with an unsupported codec: {cid}")
        if not cid.is_verifiable:
            raise MalformedContent(
                f"The CAR has a link with the hash function {cid.hash:#x}; it must be sha2-256: {cid}"
            )
        if cid.hash == IDENTITY:
            if cid.codec == DAG_PB and cid not in self._nodes:
                self._nodes[cid] = self._summarize_node(cid.digest)
        elif cid not in self._rows:
            raise MalformedContent(f"The CAR lacks the block {cid}")
        return self._nodes[cid].links if cid in self._nodes else ()

    def _summarize_subtree(self, cid: Cid) -> _SubtreeSummary:
        """Total the subtree of a block. Raises MalformedContent for a wrong size or a too deep file."""
        node = self._nodes.get(cid)
        if node is None:
            return _SubtreeSummary(len(cid.digest) if cid.hash == IDENTITY else self._rows[cid].length)
        parts = [self._subtrees[link] for link in node.links]
        size = sum(part.size for part in parts)
        if node.kind in _FOLDERS:
            return _SubtreeSummary(size, min(_MOST_FILES, sum(part.files for part in parts)))
        depth = max((part.depth + 1 for part in parts), default=0)
        total = node.data_size + size
        sizes_differ = node.declared_size not in {None, total} or [part.size for part in parts] != list(node.link_sizes)
        if sizes_differ or depth > MAX_FILE_DEPTH:
            raise MalformedContent(f"A file of the CAR declares a wrong size or is too deep: {cid}")
        return _SubtreeSummary(total, depth=depth)
