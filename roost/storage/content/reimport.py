"""Read a received pack again: import its files with another profile, or as a CAR.

Forms may name the profile or the CAR after the bytes. The bytes are not written again.
"""

from roost.core.db import Database
from roost.drivers.blob.contract import BlobStore, BlobWriter
from roost.storage.content.car_receiver import CarReceiver
from roost.storage.content.chunk_pipeline import PIECE_SIZE
from roost.storage.content.receiver import ContentReceiver
from roost.storage.content.unixfs.importer import DagTree
from roost.storage.content.unixfs.profile import ImportProfile


class Reimporter:
    def __init__(self, db: Database, blobs: BlobStore) -> None:
        self._db = db
        self._blobs = blobs

    async def import_with_profile(
        self, receiver: ContentReceiver, profile: ImportProfile
    ) -> tuple[ContentReceiver, list[DagTree]]:
        """Return a receiver of the same pack and its files by another profile. Raises BlobNotFound, BlobStoreFailed."""
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
        """Read the pack as a CAR. Raises MalformedContent, BlobNotFound, BlobStoreFailed."""
        await receiver.commit_blob()
        car = CarReceiver(self._db, _NullWriter(), receiver.pack_id)
        if receiver.size:
            async for piece in self._blobs.stream(receiver.pack_id, 0, receiver.size, PIECE_SIZE):
                await car.write(piece)
        return car


class _NullWriter(BlobWriter):
    """Writer of bytes that the pack already has."""

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        pass

    async def commit(self) -> None:
        pass

    async def abort(self) -> None:
        pass
