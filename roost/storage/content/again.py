"""A pack whose bytes are kept already, read once more: its files under another profile, or as a CAR.

Forms tell what they bring after the bytes. What is read again is not written again.
"""

from roost.core.db import Database
from roost.drivers.blob.contract import BlobStore, Writer
from roost.storage.content.cars import CarReceiver
from roost.storage.content.pieces import PIECE
from roost.storage.content.receiver import Receiver
from roost.storage.unixfs.importer import Tree
from roost.storage.unixfs.profile import Profile


class Again:
    def __init__(self, db: Database, blobs: BlobStore) -> None:
        self._db = db
        self._blobs = blobs

    async def under(self, receiver: Receiver, profile: Profile) -> tuple[Receiver, list[Tree]]:
        """A receiver that has the same files under another profile, and these. Raises BlobMissing, BlobFailed."""
        await receiver.keep()
        other = Receiver(self._db, _There(), receiver.pack_id, profile)
        trees: list[Tree] = []
        for file in receiver.files:
            if file.size:
                async for piece in self._blobs.stream(receiver.pack_id, file.offset, file.size, PIECE):
                    await other.write(piece)
            trees.append(await other.end_file())
        return other, trees

    async def as_car(self, receiver: Receiver) -> CarReceiver:
        """A receiver of the CAR that the pack is. Raises Malformed, BlobMissing, BlobFailed."""
        await receiver.keep()
        car = CarReceiver(self._db, _There(), receiver.pack_id)
        if receiver.size:
            async for piece in self._blobs.stream(receiver.pack_id, 0, receiver.size, PIECE):
                await car.write(piece)
        return car


class _There(Writer):
    """Writes what is there."""

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        pass

    async def commit(self) -> None:
        pass

    async def abort(self) -> None:
        pass
