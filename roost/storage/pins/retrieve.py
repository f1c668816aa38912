"""Retrieval of a pin's content: from this server, then from each source of the network, until one has all of it.

The content becomes a file only if it is complete, every block matches its CID, and its root is the requested one. A
source that breaks off, sends wrong blocks or sends too much is left for the next one. A restart begins anew.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing

from sqlalchemy import Connection

from roost import work
from roost.core import clock, log
from roost.core.db import Database
from roost.core.problem import Problem
from roost.drivers.blob.contract import BlobStoreFailed
from roost.drivers.network.contract import ContentSource, InvalidHostNode, PublicNetwork, http_origin
from roost.identity import tenants
from roost.storage.content.car_export import export_car
from roost.storage.content.car_receiver import CarContents, CarReceiver
from roost.storage.content.model import ContentNetwork, ContentScope
from roost.storage.content.reader import ContentReader
from roost.storage.content.service import ContentService
from roost.storage.files.damage import is_damaged
from roost.storage.files.errors import StorageQuotaExceeded
from roost.storage.files.model import File, FileFilter, FileMetadata
from roost.storage.files.service import FileService, NewFile
from roost.storage.pins import store
from roost.storage.pins.errors import ContentNotFoundYet, PinNotFound
from roost.storage.pins.model import LIFE, RETRIEVE, WAITING, Pin, PinState
from roost.storage.pins.service import next_one
from roost.storage.unixfs.cid import DAG_PB, RAW, SHA2_256, Cid
from roost.storage.unixfs.dagpb import UnixfsKind
from roost.storage.unixfs.errors import MalformedContent
from roost.storage.uploads import mime_sniffing
from roost.storage.uploads.errors import UploadTooLarge
from roost.storage.uploads.model import DIRECTORY
from roost.work import JSON, ClaimedOperation, OperationLimits

RETRIES = 400
"""With the pauses between them more than a day, after which the pin expires."""
LONGEST = 2 * 3600.0
"""Seconds that one source may take."""
PATIENCE, LEAST = 90.0, 1024 * 1024
"""Within so many seconds a source gives so many bytes more, or all that it has: 11.6 KiB/s, and time to begin."""
LIMITS = OperationLimits(total=4, per_tenant=2, per_subject=2)
"""Pins that are retrieved at once."""
_FOLDERS = frozenset({UnixfsKind.DIRECTORY, UnixfsKind.SHARD})

_log = log.get_logger("pins")


class PinRetrieval:
    def __init__(
        self,
        db: Database,
        queue: work.OperationWorker,
        content: ContentService,
        files: FileService,
        network: PublicNetwork,
        limit: Callable[[str], Awaitable[int]],
        most: int,
        *,
        patience: float = PATIENCE,
    ) -> None:
        """`limit` returns the maximum bytes of an upload of a tenant, and so of a pin; `most` is that of any plan."""
        self._db = db
        self._content = content
        self._files = files
        self._network = network
        self._limit = limit
        self._most = most
        self._patience = patience
        queue.handle(RETRIEVE, self.handle, retries=RETRIES, limits=LIMITS)

    async def handle(self, claim: ClaimedOperation) -> JSON:
        """Ask all sources once. Raises ContentNotFoundYet."""
        pin = await self._db.read(lambda connection: store.get(connection, claim.payload["pin"]))
        if pin is None or pin.status not in WAITING:
            return None
        await self._round(pin)
        return None

    async def _round(self, pin: Pin) -> None:
        if (wrong := _wrong(pin)) is not None:
            await self._end(pin, wrong)
        elif (file := await self._present(pin)) is not None:
            await self._end(pin, PinState.PINNED, file.id)
        else:
            await self._set(pin, PinState.SEARCHING)
            await self._search(pin)

    async def _search(self, pin: Pin) -> None:
        limit = await self._limit(pin.tenant_id)
        over: PinState | None = None
        for source in (_LocalSource(self._content.reader), *self._network.sources(pin.ask.hosts)):
            try:
                async with asyncio.timeout(LONGEST):
                    await self._take(pin, source, limit)
            except (PinNotFound, BlobStoreFailed):
                raise
            except StorageQuotaExceeded:
                over = PinState.OVER_FREE_LIMIT
                break
            except UploadTooLarge:
                over = PinState.OVER_FREE_LIMIT if limit < self._most else PinState.OVER_MAX_SIZE
            except (Problem, TimeoutError) as error:  # whatever is wrong with what one source gave
                reason = error.message if isinstance(error, Problem) else "too slow"
                _log.info("pin.not_from_there", pin=pin.id, source=source.name, reason=reason)
            else:
                return
        if over is not None:
            await self._end(pin, over)
        else:
            await self._set(pin, PinState.SEARCHING)
            raise ContentNotFoundYet

    async def _take(self, pin: Pin, source: ContentSource, limit: int) -> None:
        async with self._content.receive_car() as car, aclosing(source.car(pin.ask.cid)) as pieces:
            await self._receive(pin, car, pieces, limit)
            kept = await car.finish()
            if kept.cid.v1() != Cid.parse(pin.ask.cid).v1():
                raise MalformedContent("The CAR has another root than was asked for")
            if kept.size > limit:  # few blocks, each of which is in it very often
                raise UploadTooLarge
            await self._publish(pin, car, kept)

    async def _receive(self, pin: Pin, car: CarReceiver, pieces: AsyncGenerator[bytes, None], limit: int) -> None:
        """All that a source gives. Raises TimeoutError for one that drips, UploadTooLarge, Malformed."""
        async with asyncio.timeout(self._patience) as patience:
            paid = 0
            async for piece in pieces:
                if not car.size:
                    await self._set(pin, PinState.RETRIEVING)
                if car.size + len(piece) > limit:
                    await car.flush()  # a liar is one, whatever the length of the lie
                    raise UploadTooLarge
                await car.write(piece)
                if car.size - paid >= LEAST:
                    paid = car.size
                    patience.reschedule(asyncio.get_running_loop().time() + self._patience)

    async def _publish(self, pin: Pin, car: CarReceiver, kept: CarContents) -> None:
        """The file, unless nobody wants it any more. Raises PinMissing, StorageFull; what came is gone then."""

        def publish(connection: Connection) -> None:
            tenants.lock_tenant(connection, pin.tenant_id)
            now = _waiting(connection, pin)
            mime_type = DIRECTORY if kept.kind in _FOLDERS else mime_sniffing.UNKNOWN
            note = FileMetadata(now.ask.name, now.ask.keyvalues, now.ask.group_id)
            arrival = NewFile(pin.tenant_id, ContentNetwork.PUBLIC, pin.ask.cid, kept.size, mime_type, note, kept.files)
            file = self._files.add(connection, arrival, car.pack_id)
            _over(connection, pin, PinState.PINNED, file.id)

        try:
            await car.commit(publish)
        except (PinNotFound, StorageQuotaExceeded):
            await self._content.discard(car.pack_id)
            raise

    async def _present(self, pin: Pin) -> File | None:
        """The tenant's file of that CID, as it was written, unless it is to be mended."""
        chosen = FileFilter(cid=[pin.ask.cid])
        found, _ = await self._files.list(pin.tenant_id, ContentNetwork.PUBLIC, chosen, None, 1)
        for file in found:
            if not await self._db.read(lambda connection, file=file: is_damaged(connection, file)):
                return file
        return None

    async def _set(self, pin: Pin, status: PinState) -> None:
        """Raises PinMissing."""

        def write(connection: Connection) -> None:
            _waiting(connection, pin)
            store.set_status(connection, pin.id, status, clock.utc_now())

        await self._db.write(write)

    async def _end(self, pin: Pin, status: PinState, file_id: str | None = None) -> None:
        """Raises PinMissing."""

        def write(connection: Connection) -> None:
            tenants.lock_tenant(connection, pin.tenant_id)
            _waiting(connection, pin)
            _over(connection, pin, status, file_id)

        await self._db.write(write)


class _LocalSource(ContentSource):
    """What is public on this server, whoever pinned it."""

    def __init__(self, reader: ContentReader) -> None:
        super().__init__("here")
        self._reader = reader

    async def car(self, cid: str) -> AsyncGenerator[bytes, None]:
        scope = ContentScope(ContentNetwork.PUBLIC)
        root = await self._reader.stat(scope, Cid.parse(cid))
        async with aclosing(export_car(self._reader, scope, [root])) as pieces:
            async for piece in pieces:
                yield piece


def _wrong(pin: Pin) -> PinState | None:
    """Why a pin is not looked for any further, if it is not."""
    if clock.utc_now() >= pin.created_at + LIFE:
        return PinState.EXPIRED
    cid = Cid.parse(pin.ask.cid)
    if cid.hash != SHA2_256 or cid.codec not in {RAW, DAG_PB}:
        return PinState.INVALID_OBJECT
    return None if _are_hosts(pin.ask.hosts) else PinState.BAD_HOST_NODE


def _are_hosts(hosts: Sequence[str]) -> bool:
    try:
        for host in hosts:
            http_origin(host)
    except InvalidHostNode:
        return False
    return True


def _waiting(connection: Connection, pin: Pin) -> Pin:
    """The pin as it is now, locked. Raises PinMissing for one that was taken back, or that another attempt ended."""
    now = store.get(connection, pin.id, lock=True)
    if now is None or now.status not in WAITING:
        raise PinNotFound
    return now


def _over(connection: Connection, pin: Pin, status: PinState, file_id: str | None) -> None:
    store.set_status(connection, pin.id, status, clock.utc_now(), file_id)
    next_one(connection, pin.tenant_id)
