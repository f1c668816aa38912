"""Receive content, add and release holders of packs, and sweep packs without one, also in the background."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from datetime import datetime, timedelta

from roost.core import clock, ids, log
from roost.core.db import Connection, Database, LeasedTask
from roost.core.db.database import DatabaseWriteFailed
from roost.core.periodic import PeriodicTask
from roost.drivers.blob.contract import BlobStore, BlobStoreFailed, BlobWriter
from roost.storage.content import store
from roost.storage.content.car_receiver import CarReceiver
from roost.storage.content.chunk_pipeline import PIECE_SIZE
from roost.storage.content.errors import ContentNotFound
from roost.storage.content.model import ABANDONED_AFTER, BlockMatch, ContentScope, PackReference, StorageTotals
from roost.storage.content.reader import ContentReader
from roost.storage.content.receiver import ContentReceiver
from roost.storage.content.scrub import ContentScrubber, DescribeHolders
from roost.storage.content.unixfs.cid import IDENTITY, Cid
from roost.storage.content.unixfs.importer import DagTree
from roost.storage.content.unixfs.profile import ImportProfile

SWEEP_INTERVAL = timedelta(hours=1)
EXPIRE_INTERVAL = timedelta(minutes=1)
SCRUB_INTERVAL = timedelta(minutes=5)
TOTALS_INTERVAL = timedelta(minutes=5)

_BATCH_SIZE = 100

_log = log.get_logger("content")


class ContentService:
    def __init__(
        self, db: Database, blobs: BlobStore, describe_holders: DescribeHolders = lambda _, holders: holders
    ) -> None:
        self._db = db
        self._blobs = blobs
        self.reader = ContentReader(db, blobs)
        self.scrubber = ContentScrubber(db, self.reader, describe_holders=describe_holders)
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
        return _ReceivedCarReader(self._db, self._blobs, car)

    async def import_with_profile(
        self, receiver: ContentReceiver, profile: ImportProfile
    ) -> tuple[ContentReceiver, list[DagTree]]:
        """Read a received pack again; return a receiver of it and its files by another profile.

        Forms may name the profile after the bytes, which are not written again. Raises BlobNotFound, BlobStoreFailed.
        """
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
        """Read a received pack again, as a CAR. Raises MalformedContent, BlobNotFound, BlobStoreFailed."""
        await receiver.commit_blob()
        car = CarReceiver(self._db, _NullWriter(), receiver.pack_id)
        if receiver.size:
            async for piece in self._blobs.stream(receiver.pack_id, 0, receiver.size, PIECE_SIZE):
                await car.write(piece)
        return car

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


class MaintenanceTasks:
    """The four periodic tasks of a content store; one server at a time sweeps and scrubs what all of them have."""

    def __init__(self, db: Database, content: ContentService, expire: Callable[[], Awaitable[int]]) -> None:
        """`expire` ends some expired rows and returns their number."""
        self._content = content
        self._expire = expire
        self._tasks = [
            LeasedTask(db, "content sweep", self._sweep, SWEEP_INTERVAL.total_seconds()),
            PeriodicTask("content expire", self._expire_all, EXPIRE_INTERVAL.total_seconds()),
            LeasedTask(db, "content scrub", content.scrubber.scrub_due, SCRUB_INTERVAL.total_seconds()),
            PeriodicTask("content totals", self._measure, TOTALS_INTERVAL.total_seconds()),
        ]

    def start(self) -> None:
        for task in self._tasks:
            task.start()

    async def stop(self) -> None:
        """Idempotent. The next start does the rest of a run that was cancelled."""
        for task in self._tasks:
            await task.stop()

    async def _sweep(self) -> None:
        if count := await self._content.sweep():
            _log.info("content.swept", objects=count)

    async def _measure(self) -> None:
        """Read what each server's metrics show."""
        await self._content.refresh_totals()
        await self._content.scrubber.count_damaged()

    async def _expire_all(self) -> None:
        while await self._expire():
            pass


class _NullWriter(BlobWriter):
    """Writer of bytes that the pack already has."""

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        pass

    async def commit(self) -> None:
        pass

    async def abort(self) -> None:
        pass


class _ReceivedCarReader(ContentReader):
    """Reader of the blocks of one received CAR, whatever the scope, before it is content."""

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


# Other slices call these in their transactions; the store is private to this package.
add_pack, known_packs = store.add_pack, store.known_packs
hold_pack, hold_packs, release_packs = store.hold_pack, store.hold_packs, store.release_packs
is_damaged, holders_of_damaged = store.holds_damaged, store.holders_of_damaged
stored_bytes, storage_totals = store.stored_bytes, store.storage_totals


def replace_damaged(connection: Connection, reference: PackReference) -> bool:
    """Move a holder from its damaged pack to an undamaged one; return whether its own was damaged."""
    if not store.holds_damaged(connection, reference.holder):
        return False
    store.release_packs(connection, reference.holder)
    store.hold_pack(connection, reference)
    return True
