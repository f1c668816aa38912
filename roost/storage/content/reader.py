"""Read blocks, ranges of files and entries of folders, verified against their CIDs and limited to a scope.

The content of a file that was imported here is one range of its pack, so the first byte of any range takes one lookup
and one read. Other graphs are walked link by link.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NoReturn

from roost.core import log
from roost.core.db import Database
from roost.drivers.blob.contract import BlobNotFound, BlobStore
from roost.storage.content import store
from roost.storage.content.errors import (
    ContentDamaged,
    ContentNotAFile,
    ContentNotAFolder,
    ContentNotFound,
    EntryNotFound,
    TooDeep,
    TooManyShards,
)
from roost.storage.content.model import MAX_FILE_DEPTH, BlockLocation, BlockMatch, BlockRow, ContentScope, TreeRow
from roost.storage.content.unixfs import dagpb
from roost.storage.content.unixfs.cid import DAG_PB, DIGEST, IDENTITY, RAW, SHA2_256, Cid
from roost.storage.content.unixfs.dagpb import PBLink, PBNode, UnixfsData, UnixfsKind
from roost.storage.content.unixfs.directory import FANOUT, hash_name
from roost.storage.content.unixfs.profile import get_profile

_MAX_SHARD_DEPTH = 8  # each level uses one byte of the hash of a name
_MODE_BITS = 0o7777
_DIGEST_PAGE = 64  # chunks whose digests are fetched at a time
_YIELD_EVERY = 64
"""Blocks between yields to the event loop: inline blocks are read without waiting."""
_LARGE_BLOCK = 64 * 1024
_RUN_BYTES = 1024 * 1024
"""Length of neighbouring blocks that are read together, unless one block is longer."""
_INITIAL_SHARDS, _SHARDS_PER_ENTRY = 64, 16
"""Shards that a walk may visit before the first entry, and for each entry."""

_log = log.get_logger("content")


@dataclass(frozen=True, slots=True)
class ContentStat:
    """Kind and location of a CID. size: bytes of a file, None for a folder. node: None for raw bytes.

    shard_path: the shards between its folder and this entry, which prove the path.
    """

    cid: Cid
    kind: UnixfsKind
    size: int | None
    block: BlockMatch
    node: PBNode | None = None
    shard_path: Sequence[Cid] = ()

    @property
    def mode(self) -> int | None:
        """Permissions (`0o755`), or None if they are not stored."""
        stored = None if self.node is None else self.node.unixfs.mode
        return None if stored is None else stored & _MODE_BITS


class ContentReader:
    def __init__(self, db: Database, blobs: BlobStore) -> None:
        self._db = db
        self._blobs = blobs
        self._loads = 0

    async def read_block(self, scope: ContentScope, cid: Cid) -> bytes:
        """Read one block. Raises ContentNotFound, ContentDamaged, BlobStoreFailed."""
        return await self._load_block(await self.find_block(scope, cid))

    async def find_block(self, scope: ContentScope, cid: Cid) -> BlockMatch:
        """Locate a block; identity CIDs are visible in every scope. Raises ContentNotFound."""
        if cid.hash == IDENTITY:
            return _identity_block(cid)
        found = await self._db.read(lambda connection: store.find_block(connection, scope, cid))
        if found is None:
            raise ContentNotFound
        return found

    async def find_blocks(self, scope: ContentScope, cids: Sequence[Cid]) -> Sequence[BlockMatch]:
        """Locate many blocks with few queries, in their order. Raises ContentNotFound."""
        found = await self._db.read_long(
            lambda connection: store.find_blocks(connection, scope, cids), scope.tenant_id or ""
        )
        blocks = [_identity_block(cid) if cid.hash == IDENTITY else one for cid, one in zip(cids, found, strict=True)]
        if None in blocks:
            raise ContentNotFound
        return [block for block in blocks if block is not None]

    async def read_slices(self, blocks: Sequence[BlockMatch]) -> AsyncGenerator[tuple[int, bytes]]:
        """Yield blocks that are ranges of packs, with their indexes, in the order of the packs.

        Neighbours take one read together, so whole folders are read fast. Raises ContentNotFound, ContentDamaged,
        BlobStoreFailed.
        """
        run: list[int] = []
        for index in sorted(range(len(blocks)), key=lambda index: (blocks[index].pack_id, blocks[index].row.offset)):
            if run and not _continues_run(blocks[run[0]], blocks[run[-1]], blocks[index]):
                for found in zip(run, await self._read_run([blocks[one] for one in run]), strict=True):
                    yield found
                run.clear()
            run.append(index)
        if run:
            for found in zip(run, await self._read_run([blocks[one] for one in run]), strict=True):
                yield found

    async def stat(self, scope: ContentScope, cid: Cid) -> ContentStat:
        """Describe a CID. Raises ContentNotFound, ContentDamaged, MalformedContent."""
        return await self.describe_block(await self.find_block(scope, cid))

    async def describe_block(self, found: BlockMatch) -> ContentStat:
        """Describe the content of a block. Raises ContentNotFound, ContentDamaged, MalformedContent."""
        cid = found.row.cid
        if cid.codec != DAG_PB:
            whole = found.row.location is not BlockLocation.FRAMED  # otherwise a leaf node addressed by its RAW CID
            size = found.row.length if whole else len(await self._load_block(found))
            return ContentStat(cid, UnixfsKind.RAW, size, found)
        node = await decode_node(await self._load_block(found))
        return ContentStat(cid, node.unixfs.kind, _file_size(node.unixfs), found, node)

    async def resolve(self, scope: ContentScope, root: Cid | ContentStat, path: Sequence[str]) -> Sequence[ContentStat]:
        """Resolve a path; return the root and the content of each segment.

        Raises EntryNotFound, ContentNotFound, ContentNotAFolder.
        """
        steps = [root if isinstance(root, ContentStat) else await self.stat(scope, root)]
        for name in path:
            link, shards = await self._find_entry(scope, steps[-1], name)
            steps.append(replace(await self.stat(scope, link.cid), shard_path=shards))
        return steps

    async def list_entries(self, scope: ContentScope, folder: ContentStat) -> AsyncGenerator[PBLink]:
        """Yield the entries of a folder, sharded ones in shard order. Raises ContentNotAFolder, TooManyShards."""
        if folder.node is None or folder.kind not in {UnixfsKind.DIRECTORY, UnixfsKind.SHARD}:
            raise ContentNotAFolder
        async for link in self._walk_folder(scope, folder.node, 0, ShardBudget()):
            yield link

    async def stream_file(
        self, scope: ContentScope, file: ContentStat, begin: int = 0, end: int | None = None
    ) -> AsyncGenerator[bytes]:
        """Stream the bytes `begin` to `end` of a file. Raises ContentNotAFile, ContentNotFound, ContentDamaged."""
        if file.size is None or file.kind not in {UnixfsKind.FILE, UnixfsKind.RAW}:
            raise ContentNotAFile
        end = file.size if end is None else min(end, file.size)
        if file.node is None:  # a single raw block
            yield (await self._load_block(file.block))[begin:end]
            return
        if not file.node.links and not file.node.unixfs.sizes:  # all content is in the node
            if own := file.node.unixfs.data[begin:end]:
                yield own
            return
        tree = await self._db.read(lambda connection: store.find_tree(connection, file.block.pack_id, file.cid))
        pieces = (
            self._walk_file(scope, file.cid, begin, end, 0)
            if tree is None
            else self._stream_tree(file.block.pack_id, tree, begin, end)
        )
        async for piece in pieces:
            yield piece

    async def _stream_tree(self, pack_id: str, tree: TreeRow, begin: int, end: int) -> AsyncGenerator[bytes]:
        """Stream a range of a file that is one range of its pack, chunk by chunk, each verified."""
        profile = get_profile(tree.profile)
        first, last = begin // profile.chunk, -(-end // profile.chunk)
        try:
            for page in range(first, last, _DIGEST_PAGE):
                count = min(_DIGEST_PAGE, last - page)
                read = partial(store.leaf_digests, pack_id=pack_id, cid=tree.cid, first=page, count=count)
                digests = await self._db.read(read)
                at = page * profile.chunk
                length = min(count * profile.chunk, tree.size - at)
                number = 0
                async for piece in self._blobs.stream(pack_id, tree.offset + at, length, profile.chunk):
                    digest = digests[number * DIGEST : (number + 1) * DIGEST]
                    framed = piece if profile.raw else _frame_leaf(piece)
                    if not Cid(1, RAW, SHA2_256, digest).matches(framed):
                        await self._report_damage(pack_id)
                    yield piece[max(0, begin - at) : end - at]
                    at += profile.chunk
                    number += 1
        except BlobNotFound:
            await self._report_damage(pack_id)

    async def _walk_file(
        self, scope: ContentScope, cid: Cid, begin: int, end: int, depth: int
    ) -> AsyncGenerator[bytes]:
        """Stream a range of a file link by link."""
        if depth > MAX_FILE_DEPTH:
            raise TooDeep
        block = await self.read_block(scope, cid)
        if cid.codec != DAG_PB:
            yield block[begin:end]
            return
        node = await decode_node(block)
        if node.unixfs.kind not in {UnixfsKind.FILE, UnixfsKind.RAW} or len(node.links) != len(node.unixfs.sizes):
            raise ContentNotAFile
        own = node.unixfs.data
        if own[begin:end]:
            yield own[begin:end]
        at = len(own)
        for link, size in zip(node.links, node.unixfs.sizes, strict=True):
            if size and at < end and at + size > begin:  # skips empty links, which can repeat without end
                async for piece in self._walk_file(scope, link.cid, max(0, begin - at), min(size, end - at), depth + 1):
                    yield piece
            at += size

    async def _find_entry(self, scope: ContentScope, folder: ContentStat, name: str) -> tuple[PBLink, Sequence[Cid]]:
        """Find an entry of a folder, and the shards between the root node and the entry."""
        shards: list[Cid] = []
        node, key = folder.node, hash_name(name)
        if node is None or folder.kind not in {UnixfsKind.DIRECTORY, UnixfsKind.SHARD}:
            raise ContentNotAFolder
        for place in key:
            if node.unixfs.kind is UnixfsKind.DIRECTORY:
                break
            _check_width(node)
            label = f"{place:02X}"
            below = next((link for link in node.links if link.name == label), None)
            if below is None:
                return _find_link(node, label + name), shards
            shards.append(below.cid)
            node = await decode_node(await self.read_block(scope, below.cid))
        return _find_link(node, name), shards

    async def _walk_folder(
        self, scope: ContentScope, node: PBNode, depth: int, budget: "ShardBudget"
    ) -> AsyncGenerator[PBLink]:
        if depth > _MAX_SHARD_DEPTH:
            raise TooDeep
        _check_width(node)
        for link in node.links:
            if node.unixfs.kind is UnixfsKind.DIRECTORY:
                yield link
            elif len(link.name) > 2:
                budget.add_entry()
                yield PBLink(link.cid, link.name[2:], link.size)
            else:
                budget.spend_shard()
                shard = await decode_node(await self.read_block(scope, link.cid))
                async for below in self._walk_folder(scope, shard, depth + 1, budget):
                    yield below

    async def is_whole(self, found: BlockMatch) -> bool:
        """Return whether the stored bytes of a block match its CID. Raises BlobStoreFailed."""
        try:
            data = await self._read_stored(found)
        except BlobNotFound:
            return False
        matches = found.row.cid.matches
        return matches(data) if len(data) < _LARGE_BLOCK else await asyncio.to_thread(matches, data)

    async def _load_block(self, found: BlockMatch) -> bytes:
        self._loads += 1
        if self._loads % _YIELD_EVERY == 0:
            await asyncio.sleep(0)
        try:
            data = await self._read_stored(found)
        except BlobNotFound:
            await self._report_damage(found.pack_id)
        if not found.row.cid.matches(data):
            await self._report_damage(found.pack_id)
        return data

    async def _read_run(self, run: Sequence[BlockMatch]) -> Sequence[bytes]:
        """Read and verify blocks that follow each other in one pack."""
        pack_id, first, last = run[0].pack_id, run[0].row, run[-1].row
        try:
            data = await self._blobs.read(pack_id, first.offset, last.offset + last.length - first.offset)
        except BlobNotFound:
            await self._report_damage(pack_id)
        parts = await asyncio.to_thread(_split_run, run, data)
        return parts if parts is not None else await self._report_damage(pack_id)

    async def _read_stored(self, found: BlockMatch) -> bytes:
        row = found.row
        if row.location is BlockLocation.INLINE:
            return row.data or b""
        data = await self._blobs.read(found.pack_id, row.offset, row.length)
        return data if row.location is BlockLocation.SLICE else _frame_leaf(data)

    async def _report_damage(self, pack_id: str) -> NoReturn:
        """Mark the pack as damaged, so that reads prefer another copy, and raise ContentDamaged.

        Raises ContentNotFound for a pack that was swept while it was read.
        """
        if not await self._db.write(lambda connection: store.mark_damaged(connection, pack_id)):
            raise ContentNotFound
        _log.error("content.found_damaged", pack=pack_id)
        raise ContentDamaged


async def decode_node(block: bytes) -> PBNode:
    """Decode a node; a large one in a thread, because it takes up to 0.25 seconds. Raises MalformedContent."""
    return dagpb.decode_node(block) if len(block) < _LARGE_BLOCK else await asyncio.to_thread(dagpb.decode_node, block)


class ShardBudget:
    """Limit of shards that a walk visits: nested shards can repeat one block 256 times a level."""

    def __init__(self) -> None:
        self._left = _INITIAL_SHARDS

    def add_entry(self) -> None:
        self._left += _SHARDS_PER_ENTRY

    def spend_shard(self) -> None:
        """Count one shard. Raises TooManyShards."""
        if self._left == 0:
            raise TooManyShards
        self._left -= 1


def _continues_run(first: BlockMatch, last: BlockMatch, block: BlockMatch) -> bool:
    """Return whether a block follows the last one of a run, which is not too long with it."""
    end = block.row.offset + block.row.length
    is_next = block.pack_id == last.pack_id and block.row.offset == last.row.offset + last.row.length
    return is_next and end - first.row.offset <= _RUN_BYTES


def _split_run(run: Sequence[BlockMatch], data: bytes) -> Sequence[bytes] | None:
    """Return the bytes of each block, or None if those of one do not match its CID."""
    begin = run[0].row.offset
    parts = [data[block.row.offset - begin : block.row.offset - begin + block.row.length] for block in run]
    return parts if all(block.row.cid.matches(part) for block, part in zip(run, parts, strict=True)) else None


def _identity_block(cid: Cid) -> BlockMatch:
    return BlockMatch("", BlockRow(cid, BlockLocation.INLINE, length=len(cid.digest), data=cid.digest))


def _file_size(unixfs: UnixfsData) -> int | None:
    if unixfs.kind in {UnixfsKind.DIRECTORY, UnixfsKind.SHARD}:
        return None
    return len(unixfs.data) + sum(unixfs.sizes) if unixfs.size is None else unixfs.size


def _frame_leaf(content: bytes) -> bytes:
    before, after = dagpb.leaf_frame(len(content))
    return before + content + after


def _check_width(node: PBNode) -> None:
    """Raise ContentNotAFolder for a shard with another fanout, whose labels have another width."""
    if node.unixfs.kind is UnixfsKind.SHARD and node.unixfs.fanout != FANOUT:
        raise ContentNotAFolder


def _find_link(node: PBNode, name: str) -> PBLink:
    for link in node.links:
        if link.name == name:
            return link
    raise EntryNotFound
