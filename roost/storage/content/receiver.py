"""Receive files into one pack, hash them while they are written, and publish them in one transaction.

The pack is an object of the blob store before the transaction makes it content, so a crash leaves nothing visible.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from roost.core import clock
from roost.core.db import Connection, Database
from roost.drivers.blob.contract import BlobWriter
from roost.storage.content import store
from roost.storage.content.chunk_pipeline import PIECE_SIZE, ChunkPipeline
from roost.storage.content.model import BlockLocation, BlockRow, Pack, TreeRow
from roost.storage.content.unixfs.cid import DAG_PB, DIGEST, RAW, SHA2_256, Cid
from roost.storage.content.unixfs.directory import DirectoryEntry, build_folder
from roost.storage.content.unixfs.importer import DagBlock, DagTree, UnixfsImporter, build_file, build_link
from roost.storage.content.unixfs.profile import ImportProfile

T = TypeVar("T")
FolderTree = Mapping[str, "DagTree | FolderTree"]
"""Files and folders by their names."""


class PackReceiver(ABC):
    """A new pack: `commit` makes what was written an object of the blob store, and then content."""

    def __init__(self, db: Database, writer: BlobWriter, key: str, process: Callable[[memoryview], None]) -> None:
        self._db = db
        self._writer = writer
        self._pipeline = ChunkPipeline(process, writer.write)
        self._is_blob_committed = False
        self.pack_id = key
        self.size: int = 0
        """Bytes received."""

    async def commit_blob(self) -> None:
        """Make the pack an object of the blob store, not yet visible. Idempotent. Raises BlobStoreFailed."""
        if not self._is_blob_committed:
            await self._writer.commit()
            self._is_blob_committed = True

    async def commit(self, then: Callable[[Connection], T]) -> T:
        """Commit the blob, then publish the pack and call `then`, which adds a holder, in one transaction.

        Raises BlobStoreFailed and the errors of `then`; nothing is visible after either.
        """
        await self.commit_blob()

        def publish(connection: Connection) -> T:
            self.publish_pack(connection)
            return then(connection)

        return await self._db.write(publish)

    @abstractmethod
    def publish_pack(self, connection: Connection) -> None:
        """Make a committed blob content, in the transaction that adds a holder."""

    async def aclose(self) -> None:
        """Wait for running work and release the buffers. Idempotent."""
        await self._pipeline.close()


class ContentReceiver(PackReceiver):
    """A pack of files: `write` the bytes of a file and `end_file`, for each file; then `commit` once."""

    def __init__(self, db: Database, writer: BlobWriter, key: str, profile: ImportProfile) -> None:
        super().__init__(db, writer, key, self._hash_piece)
        self._profile = profile
        self._importer = UnixfsImporter(profile)
        self._file_offset = 0
        self._small_files: list[bytes | memoryview] = []
        self._small_bytes = 0
        self._nodes: list[BlockRow] = []
        self.files: list[TreeRow] = []
        """The finished files, in order."""

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        """Write the next bytes of the current file. Raises BlobStoreFailed."""
        self.size += len(data)
        if self.size - self._file_offset >= PIECE_SIZE:
            await self._flush_small_files()
        await self._pipeline.add(data)

    async def end_file(self, mode: int | None = None) -> DagTree:
        """End the current file and return its tree; the next byte begins another file.

        `mode` are its permissions (`0o755`); None stores none.
        """
        if self.size - self._file_offset >= PIECE_SIZE:
            await self._pipeline.flush()
        elif piece := self._pipeline.take_buffered():  # a thread would cost more than hashing a small file
            self._importer.update(piece)
            self._keep_small_file(piece)
            await self.write_small_files()
        tree = self._importer.finish(mode)
        self._add_tree(tree)
        self._importer = UnixfsImporter(self._profile)
        return tree

    def add_small_file(self, content: bytes | memoryview, mode: int | None = None) -> DagTree:
        """Add a whole file without waiting, also from a thread; `write_small_files` follows.

        No other file is being written. The content must not change.
        """
        tree = build_file(self._profile, content, mode)
        self.size += len(content)
        self._keep_small_file(content)
        self._add_tree(tree)
        return tree

    async def write_small_files(self) -> None:
        """Write the small files together once they are many, because every write takes a thread."""
        if self._small_bytes >= PIECE_SIZE:
            await self._flush_small_files()

    async def discard_file(self) -> None:
        """End the current file without making it content; the bytes of a large one stay in the pack."""
        if self.size - self._file_offset >= PIECE_SIZE:
            await self._pipeline.flush()
        else:
            self._pipeline.take_buffered()
            self.size = self._file_offset
        self._importer, self._file_offset = UnixfsImporter(self._profile), self.size

    def add_received_file(self, tree: DagTree) -> None:
        """Add a file whose bytes the writer already has."""
        self.size += tree.size
        self._add_tree(tree)

    def add_folder(self, entries: Iterable[DirectoryEntry], mode: int | None = None) -> DagTree:
        """Add a folder; the holder of this pack also holds the packs of its entries.

        Raises InvalidEntryName, MalformedContent.
        """
        tree = build_folder(self._profile, entries, mode)
        self._add_nodes(tree.nodes)
        return tree

    def add_link(self, target: bytes | str, mode: int | None = None) -> DagTree:
        """Add a symbolic link; bytes of a `str` that are not UTF-8 are lone surrogates."""
        path = target.encode("utf-8", "surrogateescape") if isinstance(target, str) else target
        tree = build_link(self._profile, path, mode)
        self._add_nodes(tree.nodes)
        return tree

    async def commit_blob(self) -> None:
        await self._flush_small_files()  # writes nothing when it is repeated
        await super().commit_blob()

    def publish_pack(self, connection: Connection) -> None:
        pack = Pack(self.pack_id, self.size, clock.utc_now())
        store.add_pack(connection, pack, self._block_rows(), self.files)

    async def _flush_small_files(self) -> None:
        if self._small_files:
            parts, self._small_files, self._small_bytes = self._small_files, [], 0
            await self._writer.write_parts(parts)

    def _keep_small_file(self, content: bytes | memoryview) -> None:
        self._small_files.append(content)
        self._small_bytes += len(content)

    def _add_tree(self, tree: DagTree) -> None:
        self.files.append(TreeRow(tree.cid, self._profile.name, self._file_offset, tree.size, tree.leaves))
        self._add_nodes(tree.nodes)
        self._file_offset = self.size

    def _hash_piece(self, piece: memoryview) -> None:
        self._importer.update(piece)

    def _block_rows(self) -> Iterator[BlockRow]:
        """Yield the row of every block; lazily, because a large file has many."""
        chunk = self._profile.chunk
        codec, where = (RAW, BlockLocation.SLICE) if self._profile.raw else (DAG_PB, BlockLocation.FRAMED)
        for file in self.files:
            for at in range(0, len(file.leaves), DIGEST):
                cid = Cid(self._profile.version, codec, SHA2_256, file.leaves[at : at + DIGEST])
                begin = at // DIGEST * chunk
                yield BlockRow(cid, where, file.offset + begin, min(chunk, file.size - begin))
        yield from self._nodes

    def _add_nodes(self, nodes: Iterable[DagBlock]) -> None:
        self._nodes += [
            BlockRow(node.cid, BlockLocation.INLINE, length=len(node.data), data=node.data) for node in nodes
        ]


def add_folder_tree(receiver: ContentReceiver, inside: FolderTree) -> DagTree:
    """Add a folder with all folders below it. Raises InvalidEntryName, MalformedContent."""
    entries: list[DirectoryEntry] = []
    for name, below in inside.items():
        tree = below if isinstance(below, DagTree) else add_folder_tree(receiver, below)
        entries.append(DirectoryEntry(name, tree.cid, tree.size, tree.tsize))
    return receiver.add_folder(entries)
