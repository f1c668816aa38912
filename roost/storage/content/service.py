"""Receive content, add and release holders of packs, and sweep packs without one."""

from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from datetime import datetime, timedelta

from sqlalchemy import Connection

from roost.core import clock, ids
from roost.core.db import Database
from roost.core.db.database import DatabaseWriteFailed
from roost.drivers.blob.contract import BlobStore, BlobStoreFailed, BlobWriter
from roost.storage.content import store
from roost.storage.content.car_receiver import CarReceiver
from roost.storage.content.model import ABANDONED_AFTER, ContentNetwork, InternalNetwork, PackReference, StorageTotals
from roost.storage.content.reader import ContentReader
from roost.storage.content.received_car import ReceivedCarReader
from roost.storage.content.receiver import ContentReceiver
from roost.storage.content.reimport import Reimporter
from roost.storage.content.scrub import ContentScrubber, DescribeHolders
from roost.storage.content.unixfs.importer import DagTree
from roost.storage.content.unixfs.profile import ImportProfile

_BATCH_SIZE = 100


class ContentService:
    def __init__(
        self, db: Database, blobs: BlobStore, describe_holders: DescribeHolders = lambda _, holders: holders
    ) -> None:
        self._db = db
        self._blobs = blobs
        self.reader = ContentReader(db, blobs)
        self.scrubber = ContentScrubber(db, self.reader, describe_holders=describe_holders)
        self.reimporter = Reimporter(db, blobs)
        self.totals = StorageTotals(0, 0)
        """As of the last `refresh_totals`."""

    @asynccontextmanager
    async def receive(self, profile: ImportProfile) -> AsyncGenerator[ContentReceiver]:
        """Open a pack for writing; the context removes it unless it was committed. Raises BlobStoreFailed."""
        key = ids.random_bytes(16).hex()
        async with (
            await self._blobs.create(key) as writer,
            aclosing(ContentReceiver(self._db, writer, key, profile)) as receiver,
        ):
            yield receiver

    def receive_written(self, writer: BlobWriter, profile: ImportProfile, key: str, tree: DagTree) -> ContentReceiver:
        """Return a receiver of one file whose bytes `writer` already has."""
        receiver = ContentReceiver(self._db, writer, key, profile)
        receiver.add_received_file(tree)
        return receiver

    @asynccontextmanager
    async def receive_car(self) -> AsyncGenerator[CarReceiver]:
        """Open a pack for a CAR; the context removes it unless it was committed. Raises BlobStoreFailed."""
        key = ids.random_bytes(16).hex()
        async with await self._blobs.create(key) as writer, aclosing(CarReceiver(self._db, writer, key)) as receiver:
            yield receiver

    async def read_car(self, car: CarReceiver) -> ContentReader:
        """Return a reader of a finished CAR, which is not content yet; `discard` it unless it becomes content.

        Raises BlobStoreFailed.
        """
        await car.commit_blob()
        return ReceivedCarReader(self._db, self._blobs, car)

    async def discard(self, pack_id: str) -> None:
        """Remove a pack now unless it has a holder; after a failure, the next sweep removes it."""

        def remove(connection: Connection) -> bool:
            store.remove_unheld(connection, pack_id)
            return not store.known_packs(connection, [pack_id])

        with suppress(DatabaseWriteFailed, BlobStoreFailed):
            if await self._db.write(remove):
                await self._blobs.delete(pack_id)

    async def refresh_totals(self) -> None:
        """Update `totals` from the database."""
        self.totals = await self._db.read_long(store.storage_totals)

    async def sweep(self, abandoned: timedelta = ABANDONED_AFTER) -> int:
        """Remove packs without a holder and remains of crashes that are old enough; return the number of objects."""
        before = clock.utc_now() - abandoned
        gone = await self._blobs.sweep(abandoned)
        after = ""
        while unheld := await self._list_unheld(before, after):
            after = unheld[-1]
            for pack_id in unheld:
                if await self._db.write(lambda connection, pack_id=pack_id: store.remove_unheld(connection, pack_id)):
                    await self._blobs.delete(pack_id)
                    gone += 1
        keys: list[str] = []
        async for blob in self._blobs.list():
            if blob.modified_at < before:
                keys.append(blob.key)
            if len(keys) == _BATCH_SIZE:
                gone += await self._delete_unknown(keys)
                keys.clear()
        return gone + await self._delete_unknown(keys)

    async def _list_unheld(self, before: datetime, after: str) -> Sequence[str]:
        return await self._db.read_long(lambda connection: store.list_unheld(connection, before, after, _BATCH_SIZE))

    async def _delete_unknown(self, keys: Sequence[str]) -> int:
        """Delete the objects that are no packs; return their number."""
        known = await self._db.read_long(lambda connection: store.known_packs(connection, keys))
        unknown = [key for key in keys if key not in known]
        for key in unknown:
            await self._blobs.delete(key)
        return len(unknown)


def hold_pack(connection: Connection, reference: PackReference) -> None:
    """Add a holder to a pack, in the transaction that creates the holder."""
    store.hold_pack(connection, reference)


def hold_packs(
    connection: Connection,
    holder: str,
    tenant_id: str,
    network: ContentNetwork | InternalNetwork,
    pack_ids: Collection[str],
) -> None:
    """Replace the packs of a holder: add it to those that are new, and release those that are missing.

    The caller locks the tenant; a holder keeps its tenant and its network. Raises ContentNotFound if a pack is gone.
    """
    store.hold_packs(connection, holder, tenant_id, network, pack_ids)


def release_packs(connection: Connection, holder: str) -> None:
    """Release the packs of a holder; the sweep removes packs without a holder."""
    store.release_packs(connection, holder)


def replace_damaged(connection: Connection, reference: PackReference) -> bool:
    """Move a holder from its damaged pack to an undamaged one; return whether its own was damaged."""
    if not store.holds_damaged(connection, reference.holder):
        return False
    store.release_packs(connection, reference.holder)
    store.hold_pack(connection, reference)
    return True


def stored_bytes(connection: Connection, tenant_id: str) -> int:
    """Return the bytes of all packs that the tenant holds."""
    return store.stored_bytes(connection, tenant_id)


def storage_totals(connection: Connection) -> StorageTotals:
    """Return the bytes of the packs of all tenants."""
    return store.storage_totals(connection)


def is_damaged(connection: Connection, holder: str) -> bool:
    """Return whether a pack of the holder is known to be damaged."""
    return store.holds_damaged(connection, holder)


def holders_of_damaged(connection: Connection, after: str, limit: int) -> Sequence[str]:
    """List holders of damaged packs after a name, in order."""
    return store.holders_of_damaged(connection, after, limit)
