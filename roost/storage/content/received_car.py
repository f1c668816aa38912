"""Read a received CAR before it is content, so that it can be checked and copied first."""

from collections.abc import Sequence

from roost.core.db import Database
from roost.drivers.blob.contract import BlobStore
from roost.storage.content.car_receiver import CarReceiver
from roost.storage.content.errors import ContentNotFound
from roost.storage.content.model import BlockMatch, ContentScope
from roost.storage.content.reader import ContentReader
from roost.storage.content.unixfs.cid import IDENTITY, Cid


class ReceivedCarReader(ContentReader):
    """Reader of the blocks of one CAR, whatever the scope."""

    def __init__(self, db: Database, blobs: BlobStore, car: CarReceiver) -> None:
        super().__init__(db, blobs)
        self._car = car

    async def find_block(self, scope: ContentScope, cid: Cid) -> BlockMatch:
        if cid.hash == IDENTITY:
            return await super().find_block(scope, cid)
        row = self._car.find_row(cid)
        if row is None:
            raise ContentNotFound
        return BlockMatch(self._car.pack_id, row)

    async def find_blocks(self, scope: ContentScope, cids: Sequence[Cid]) -> Sequence[BlockMatch]:
        return [await self.find_block(scope, cid) for cid in cids]
