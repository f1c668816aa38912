"""A pack whose bytes are kept already, read once more: its files under another profile, or as a CAR.

Forms tell what they bring after the bytes. What is read again is not written again.
"""

from roost.core.db import Database
from roost.drivers.blob.contract import BlobStore, BlobWriter
from roost.storage.content.car_receiver import CarReceiver
from roost.storage.content.chunk_pipeline import PIECE_SIZE
from roost.storage.content.receiver import ContentReceiver
from roost.storage.unixfs.importer import DagTree
from roost.storage.unixfs.profile import ImportProfile


class Reimporter:
    def __init__(self, db: Database, blobs: BlobStore) -> None:
        self._db = db
        self._blobs = blobs

    async def import_with_profile(self, receiver: ContentReceiver, profile: ImportProfile) -> tuple[ContentReceiver, list[DagTree]]:
        """A receiver that has the same files under another profile, and these. Raises BlobMissing, BlobFailed."""
        await receiver.commit_blob()
        other = ContentReceiver(self._db, _NullWriter(), receiver.pack_id, profile)
        trees: list[DagTree] = []
        for file in receiver.files:
            if file.size:
                async for piece in self._blobs.stream(receiver.pack_id, file.offset, file.size, PIECE_SIZE):
                    await other.write(piece)
            trees.append(await other.end_file())
        return other, trees

    async def import_car(self, receiver: ContentReceiver) -> CarReceiver:
        """A receiver of the CAR that the pack is. Raises Malformed, BlobMissing, BlobFailed."""
        await receiver.commit_blob()
        car = CarReceiver(self._db, _NullWriter(), receiver.pack_id)
        if receiver.size:
            async for piece in self._blobs.stream(receiver.pack_id, 0, receiver.size, PIECE_SIZE):
                await car.write(piece)
        return car


class _NullWriter(BlobWriter):
    """Writes what is there."""

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        pass

    async def commit(self) -> None:
        pass

    async def abort(self) -> None:
        pass
