"""The receiver: files one after another into one pack, hashed while they are written, visible all at once.

What comes is written and hashed side by side while more comes, a piece at a time; no more is held. The pack is an
object of the blob store before one transaction makes it content: a crash leaves nothing that anybody sees.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from sqlalchemy import Connection

from roost.core import clock
from roost.core.db import Database
from roost.drivers.blob.contract import BlobWriter
from roost.storage.content import store
from roost.storage.content.chunk_pipeline import PIECE_SIZE, ChunkPipeline
from roost.storage.content.model import BlockLocation, BlockRow, Pack, TreeRow
from roost.storage.unixfs.cid import DAG_PB, DIGEST, RAW, SHA2_256, Cid
from roost.storage.unixfs.directory import DirectoryEntry, folder
from roost.storage.unixfs.importer import DagBlock, DagTree, UnixfsImporter
from roost.storage.unixfs.profile import ImportProfile

T = TypeVar("T")


class ContentReceiver:
    """Got from `Content.receive`. `write` the bytes of a file, `end_file`, and so on; then `commit` once."""

    def __init__(self, db: Database, writer: BlobWriter, key: str, profile: ImportProfile) -> None:
        self._db = db
        self._writer = writer
        self._profile = profile
        self._importer = UnixfsImporter(profile)
        self._pipeline = ChunkPipeline(self._hash_piece, writer.write)
        self._file_offset = 0
        self._nodes: list[BlockRow] = []
        self._trees: list[TreeRow] = []
        self._is_blob_committed = False
        self.pack_id = key
        self.size = 0
        """Bytes received."""

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        """The next bytes of the present file. Raises BlobFailed."""
        self.size += len(data)
        await self._pipeline.add(data)

    async def end_file(self) -> DagTree:
        """The file that ends here; the next byte begins another."""
        if self.size - self._file_offset >= PIECE_SIZE:
            await self._pipeline.flush()
        elif piece := self._pipeline.take_buffered():  # a small file is not worth two threads
            self._importer.update(piece)
            await self._writer.write(piece)
        tree = self._importer.finish()
        self._add_tree(tree)
        return tree

    def add_received_file(self, tree: DagTree) -> None:
        """A file whose bytes the writer has got already."""
        self.size += tree.size
        self._add_tree(tree)

    def add_folder(self, entries: Iterable[DirectoryEntry]) -> DagTree:
        """A folder of what is in this pack. Raises InvalidName, Malformed."""
        tree = folder(self._profile, entries)
        self._add_nodes(tree.nodes)
        return tree

    @property
    def files(self) -> Sequence[TreeRow]:
        """The files that have ended, in their order."""
        return self._trees

    async def commit_blob(self) -> None:
        """Make the pack an object of the blob store, which nobody sees yet. Idempotent. Raises BlobFailed."""
        if not self._is_blob_committed:
            await self._writer.commit()
            self._is_blob_committed = True

    async def commit(self, then: Callable[[Connection], T]) -> T:
        """Keep the pack, and in one transaction make it content and do `then`, which has it held by somebody.

        Raises BlobFailed and what `then` raises; nothing is to be seen in either case.
        """
        await self.commit_blob()
        pack = Pack(self.pack_id, self.size, clock.utc_now())

        def publish(connection: Connection) -> T:
            store.add_pack(connection, pack, self._block_rows(), self._trees)
            return then(connection)

        return await self._db.write(publish)

    def _add_tree(self, tree: DagTree) -> None:
        self._trees.append(TreeRow(tree.cid, self._profile.name, self._file_offset, tree.size, tree.leaves))
        self._add_nodes(tree.nodes)
        self._importer, self._file_offset = UnixfsImporter(self._profile), self.size

    async def aclose(self) -> None:
        """Waits for what a thread still does with what came. Idempotent."""
        await self._pipeline.close()

    def _hash_piece(self, piece: memoryview) -> None:
        self._importer.update(piece)

    def _block_rows(self) -> Iterator[BlockRow]:
        """Every block. Those of a large file are many: they are made where they are written down, in a thread."""
        chunk = self._profile.chunk
        codec, where = (RAW, BlockLocation.SLICE) if self._profile.raw else (DAG_PB, BlockLocation.FRAMED)
        for file in self._trees:
            for at in range(0, len(file.leaves), DIGEST):
                cid = Cid(self._profile.version, codec, SHA2_256, file.leaves[at : at + DIGEST])
                begin = at // DIGEST * chunk
                yield BlockRow(cid, where, file.offset + begin, min(chunk, file.size - begin))
        yield from self._nodes

    def _add_nodes(self, nodes: Iterable[DagBlock]) -> None:
        self._nodes += [
            BlockRow(node.cid, BlockLocation.INLINE, length=len(node.data), data=node.data) for node in nodes
        ]
