"""CAR export: the verified blocks of a file or folder in depth-first order.

Source: ipfs/specs, trustless gateway: `dag-scope`, `entity-bytes`; order=dfs, dups=n or y.
"""

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from roost.storage.content.car_receiver import CarReceiver
from roost.storage.content.errors import InvalidByteRange, TooManyBlocks
from roost.storage.content.model import ContentScope
from roost.storage.content.reader import ContentReader, ContentStat, decode_node
from roost.storage.content.unixfs import car
from roost.storage.content.unixfs.cid import DAG_PB, IDENTITY, Cid
from roost.storage.content.unixfs.dagpb import PBNode, UnixfsKind

MAX_BLOCKS = 1_000_000
_BYTE_RANGE = re.compile(r"(-?[0-9]{1,18}):(?:(-?[0-9]{1,18})|\*)", re.ASCII)
_SHARD_LABEL_LENGTH = 2


class DagScope(StrEnum):
    """Extent of an export: the block at the end of the path, the file or folder listing, or the whole graph."""

    BLOCK = "block"
    ENTITY = "entity"
    ALL = "all"


@dataclass(frozen=True)
class EntityBytes:
    """Inclusive byte range of a file; negative offsets count from its end, and `last=None` is its end."""

    first: int
    last: int | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `entity-bytes`: `0:*`, `0:1023`, `-5:*`. Raises InvalidByteRange."""
        found = _BYTE_RANGE.fullmatch(text)
        if found is None:
            raise InvalidByteRange
        return cls(int(found[1]), None if found[2] is None else int(found[2]))

    def resolve(self, size: int) -> tuple[int, int]:
        """Return the half-open range in a file of `size` bytes."""
        last = size - 1 if self.last is None else self.last
        begin, last = (at + size if at < 0 else at for at in (self.first, last))
        return max(0, begin), min(size, last + 1)


_Range = tuple[int, int] | None


async def export_car(
    reader: ContentReader,
    scope: ContentScope,
    path: Sequence[ContentStat],
    dag_scope: DagScope = DagScope.ALL,
    entity_bytes: EntityBytes | None = None,
    *,
    dups: bool = False,
) -> AsyncGenerator[bytes]:
    """Stream a CAR of the blocks on `path` (from `ContentReader.resolve`) and of the content at its end.

    dups: repeat a block each time the walk reaches it, so that a reader can discard it. entity_bytes: limits a file and
    implies the scope ENTITY. Raises ContentNotFound, ContentDamaged, TooManyBlocks, BlobStoreFailed.
    """
    end = path[-1]
    walk = _DagWalk(reader, scope, DagScope.ENTITY if entity_bytes is not None else dag_scope, dups=dups)
    yield car.encode_header([end.cid])
    for step in path:
        for cid in (*step.shard_path, *((step.cid,) if step is not end else ())):
            for piece in await walk.frame_block(cid):
                yield piece
    part = entity_bytes.resolve(end.size) if entity_bytes is not None and end.size is not None else None
    async for piece in walk.walk_below(end.cid, part):
        yield piece


async def export_frames(reader: ContentReader, scope: ContentScope, root: Cid) -> AsyncGenerator[bytes]:
    """Stream the frames of all blocks from `root` down, for a CAR whose header was written. Raises as `export_car`."""
    async for piece in _DagWalk(reader, scope, DagScope.ALL, dups=False).walk_below(root, None):
        yield piece


async def export_tree(reader: ContentReader, scope: ContentScope, root: Cid) -> AsyncGenerator[bytes]:
    """Stream a CAR of all blocks from `root` down. Raises as `export_car`."""
    async with aclosing(export_car(reader, scope, [await reader.stat(scope, root)])) as pieces:
        async for piece in pieces:
            yield piece


async def copy_tree(reader: ContentReader, scope: ContentScope, root: Cid, car: CarReceiver) -> None:
    """Write a tree to a new pack, with the same CIDs, and commit its blob.

    Raises the errors of `export_car` and of the receiver.
    """
    async with aclosing(export_tree(reader, scope, root)) as pieces:
        async for piece in pieces:
            await car.write(piece)
    await car.finish()
    await car.commit_blob()


class _DagWalk:
    def __init__(self, reader: ContentReader, scope: ContentScope, dag_scope: DagScope, *, dups: bool) -> None:
        self._reader = reader
        self._scope = scope
        self._dag_scope = dag_scope
        self._dups = dups
        self._count = 0
        self._sent: dict[bytes, bool] = {}  # by digest: whether its whole subtree was sent; empty with `dups`

    async def frame_block(self, cid: Cid) -> Sequence[bytes]:
        """Return the CAR frame of one block on the path, or nothing if it was sent."""
        if cid.digest in self._sent:
            return ()
        self._record_block(cid, whole=False)
        return _frame_block(cid, await self._reader.read_block(self._scope, cid))

    async def walk_below(self, top: Cid, part: _Range) -> AsyncGenerator[bytes]:
        waiting: list[tuple[Cid, _Range]] = [(top, part)]
        while waiting:
            cid, part = waiting.pop()
            known = self._sent.get(cid.digest)
            if known or (known is not None and cid.codec != DAG_PB):
                continue
            block = await self._reader.read_block(self._scope, cid)
            self._record_block(cid, whole=part is None and cid.codec == DAG_PB)  # read as RAW, it has no links
            if known is None:
                for piece in _frame_block(cid, block):
                    yield piece
            if cid.codec == DAG_PB and self._dag_scope is not DagScope.BLOCK:
                waiting += reversed(self._child_links(await decode_node(block), part))

    def _record_block(self, cid: Cid, *, whole: bool) -> None:
        self._count += 1
        if self._count > MAX_BLOCKS:
            raise TooManyBlocks
        if not self._dups:
            self._sent[cid.digest] = whole

    def _child_links(self, node: PBNode, part: _Range) -> Sequence[tuple[Cid, _Range]]:
        everything = self._dag_scope is DagScope.ALL
        match node.unixfs.kind:
            case UnixfsKind.DIRECTORY:
                return [(link.cid, None) for link in node.links] if everything else ()
            case UnixfsKind.SHARD:
                return [(link.cid, None) for link in node.links if everything or len(link.name) == _SHARD_LABEL_LENGTH]
            case _ if part is None:
                return [(link.cid, None) for link in node.links]
            case _:
                return list(_links_in_range(node, *part))


def _frame_block(cid: Cid, block: bytes) -> Sequence[bytes]:
    """Return the CAR frame of a block; an identity CID needs none."""
    return () if cid.hash == IDENTITY else (car.encode_frame(cid, len(block)), block)


def _links_in_range(node: PBNode, begin: int, end: int) -> Sequence[tuple[Cid, _Range]]:
    """Return the links that overlap the range, each with its part of it; None means the whole link."""
    found: list[tuple[Cid, _Range]] = []
    at = len(node.unixfs.data)
    for link, size in zip(node.links, node.unixfs.sizes, strict=False):
        if begin < end and at < end and at + size > begin:
            whole = begin <= at and at + size <= end
            found.append((link.cid, None if whole else (max(0, begin - at), min(size, end - at))))
        at += size
    return found
