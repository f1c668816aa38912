"""Content: receive it, hold it, let it go. Reading is the reader's."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from datetime import timedelta

from sqlalchemy import Connection

from roost.core import clock, ids, log
from roost.core.db import Database
from roost.core.db.database import DatabaseWriteFailed
from roost.drivers.blob.contract import BlobStore, BlobStoreFailed, BlobWriter
from roost.storage.content import store
from roost.storage.content.car_receiver import CarReceiver
from roost.storage.content.model import ABANDONED, PackReference, StorageTotals
from roost.storage.content.reader import ContentReader
from roost.storage.content.receiver import ContentReceiver
from roost.storage.content.reimport import Reimporter
from roost.storage.content.scrub import ContentScrubber
from roost.storage.unixfs.importer import DagTree
from roost.storage.unixfs.profile import ImportProfile

_AT_ONCE = 100
_log = log.get_logger("content")


class ContentService:
    def __init__(self, db: Database, blobs: BlobStore) -> None:
        self._db = db
        self._blobs = blobs
        self.reader = ContentReader(db, blobs)
        self.scrub = ContentScrubber(db, self.reader)
        self.again = Reimporter(db, blobs)
        self.kept = StorageTotals(0, 0)
        """When it was looked at last."""

    @asynccontextmanager
    async def receive(self, profile: ImportProfile) -> AsyncGenerator[ContentReceiver]:
        """A pack to write into; what is not committed at the end of the context is gone. Raises BlobFailed."""
        key = ids.random_bytes(16).hex()
        async with (
            await self._blobs.create(key) as writer,
            aclosing(ContentReceiver(self._db, writer, key, profile)) as receiver,
        ):
            yield receiver

    def received(self, writer: BlobWriter, profile: ImportProfile, key: str, tree: DagTree) -> ContentReceiver:
        """A pack of one file, the bytes of which `writer` has got already. What is not committed is not content."""
        receiver = ContentReceiver(self._db, writer, key, profile)
        receiver.take(tree)
        return receiver

    @asynccontextmanager
    async def receive_car(self) -> AsyncGenerator[CarReceiver]:
        """A pack to write a CAR into; what is not committed at the end of the context is gone. Raises BlobFailed."""
        key = ids.random_bytes(16).hex()
        async with await self._blobs.create(key) as writer, aclosing(CarReceiver(self._db, writer, key)) as receiver:
            yield receiver

    async def discard(self, pack_id: str) -> None:
        """Remove a pack that nobody holds, now; where that fails, it goes with a sweep."""

        def remove(connection: Connection) -> bool:
            store.remove_unheld(connection, pack_id)
            return not store.known(connection, [pack_id])

        with suppress(DatabaseWriteFailed, BlobStoreFailed):
            if await self._db.write(remove):
                await self._blobs.delete(pack_id)

    async def look(self) -> None:
        """Count what is kept."""
        self.kept = await self._db.read_long(store.kept)

    async def sweep(self, abandoned: timedelta = ABANDONED) -> int:
        """Remove what nobody has held for that long, and what crashes left. How many objects went."""
        before = clock.utc_now() - abandoned
        gone = await self._blobs.sweep(abandoned)
        while unheld := await self._db.read(lambda connection: store.unheld(connection, before, _AT_ONCE)):
            for pack_id in unheld:
                if await self._db.write(lambda connection, pack_id=pack_id: store.remove_unheld(connection, pack_id)):
                    await self._blobs.delete(pack_id)
                    gone += 1
        async for blob in self._blobs.list():
            if blob.modified_at < before and not await self._db.read(
                lambda connection, key=blob.key: store.known(connection, [key])
            ):
                await self._blobs.delete(blob.key)
                gone += 1
        return gone


def hold(connection: Connection, hold: PackReference) -> None:
    """Keep a pack for somebody, inside the transaction that makes that somebody."""
    store.hold(connection, hold)


def release(connection: Connection, holder: str) -> None:
    """Let go of what somebody held, inside a transaction of the caller's; what nobody else holds goes with a sweep."""
    store.release(connection, holder)


def mend(connection: Connection, hold: PackReference) -> bool:
    """Have a holder of a damaged pack hold that one instead, which has come whole; whether its own was damaged."""
    if not store.holds_damaged(connection, hold.holder):
        return False
    store.release(connection, hold.holder)
    store.hold(connection, hold)
    return True


def stored(connection: Connection, tenant_id: str) -> int:
    """Bytes that are kept for a tenant."""
    return store.stored_by(connection, tenant_id)


def kept(connection: Connection) -> StorageTotals:
    """Bytes that are kept, whoever's they are."""
    return store.kept(connection)


def is_damaged(connection: Connection, holder: str) -> bool:
    """Whether what somebody holds is known to be damaged."""
    return store.holds_damaged(connection, holder)


def holders_of_damaged(connection: Connection, after: str, limit: int) -> Sequence[str]:
    """Who holds what is known to be damaged, in the order of their names, those after one."""
    return store.holders_of_damaged(connection, after, limit)
