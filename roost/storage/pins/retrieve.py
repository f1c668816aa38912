"""Retrieve the content of a pin from this server or a source of the network, and store it as a file.

The content must be complete, every block must match its CID, and the root must be the requested one. If a source
disconnects or sends wrong blocks or too many bytes, the next one is tried. A restart repeats the whole retrieval.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from roost import work
from roost.core import clock, log
from roost.core.db import Connection, Database
from roost.core.problem import Problem
from roost.drivers.blob.contract import BlobStoreFailed
from roost.drivers.network.contract import ContentSource, InvalidHostNode, PublicNetwork, http_origin
from roost.identity import tenants
from roost.storage.content.car_export import export_tree
from roost.storage.content.car_receiver import CarContents, CarReceiver
from roost.storage.content.model import ContentNetwork, ContentScope
from roost.storage.content.reader import ContentReader
from roost.storage.content.service import ContentService
from roost.storage.content.unixfs.cid import DAG_PB, RAW, SHA2_256, Cid
from roost.storage.content.unixfs.dagpb import UnixfsKind
from roost.storage.content.unixfs.errors import MalformedContent
from roost.storage.files.model import File, FileFilter, FileMetadata, StorageQuotaExceeded
from roost.storage.files.service import FileService, NewFile, is_damaged
from roost.storage.files.uploads import mime_sniffing
from roost.storage.files.uploads.model import DIRECTORY, UploadTooLarge
from roost.storage.pins import store
from roost.storage.pins.model import RETRIEVE, SEARCH_DURATION, WAITING, ContentNotFoundYet, Pin, PinNotFound, PinState
from roost.storage.pins.service import start_next_pin
from roost.work import JSON, ClaimedOperation, Operation, OperationLimits

RETRIES = 400
"""Attempts over more than a day, after which the pin expires."""
SOURCE_TIMEOUT = 2 * 3600.0
"""Maximum seconds of a retrieval from one source."""
PROGRESS_TIMEOUT, PROGRESS_BYTES = 90.0, 1024 * 1024
"""A source must send this many bytes, or its last, within this many seconds: 11.4 KiB/s, including its start."""
LIMITS = OperationLimits(total=4, per_tenant=2, per_subject=2)
"""Concurrent retrievals."""
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
        max_limit: int,
        *,
        progress_timeout: float = PROGRESS_TIMEOUT,
    ) -> None:
        """`limit` returns the maximum bytes of a tenant's upload or pin; `max_limit` is the highest of all plans."""
        self._db = db
        self._content = content
        self._files = files
        self._network = network
        self._limit = limit
        self._max_limit = max_limit
        self._progress_timeout = progress_timeout
        queue.handle(RETRIEVE, self.retrieve, retries=RETRIES, limits=LIMITS, on_failure=_mark_expired)

    async def retrieve(self, claim: ClaimedOperation) -> JSON:
        """Try all sources once. Raises ContentNotFoundYet."""
        pin = await self._db.read(lambda connection: store.get_pin(connection, claim.payload["pin"]))
        if pin is None or pin.status not in WAITING:
            return None
        if (failure := _find_failure(pin)) is not None:
            await self._finish(pin, failure)
        elif (file := await self._find_file(pin)) is not None:
            await self._finish(pin, PinState.PINNED, file.id)
        else:
            await self._set_status(pin, PinState.SEARCHING)
            await self._search(pin)
        return None

    async def _search(self, pin: Pin) -> None:
        limit = await self._limit(pin.tenant_id)
        failure: PinState | None = None
        for source in (_LocalSource(self._content.reader), *self._network.sources(pin.request.hosts)):
            try:
                async with asyncio.timeout(SOURCE_TIMEOUT):
                    await self._retrieve(pin, source, limit)
            except (PinNotFound, BlobStoreFailed):
                raise
            except StorageQuotaExceeded:
                failure = PinState.OVER_FREE_LIMIT
                break
            except UploadTooLarge:
                failure = PinState.OVER_FREE_LIMIT if limit < self._max_limit else PinState.OVER_MAX_SIZE
            except (Problem, TimeoutError) as error:
                reason = error.message if isinstance(error, Problem) else "too slow"
                _log.info("pin.source_failed", pin=pin.id, source=source.name, reason=reason)
            else:
                return
        if failure is not None:
            await self._finish(pin, failure)
        else:
            await self._set_status(pin, PinState.SEARCHING)
            raise ContentNotFoundYet

    async def _retrieve(self, pin: Pin, source: ContentSource, limit: int) -> None:
        async with self._content.receive_car() as car, aclosing(source.car(pin.request.cid)) as pieces:
            await self._receive(pin, car, pieces, limit)
            contents = await car.finish()
            if contents.cid.v1() != Cid.parse(pin.request.cid).v1():
                raise MalformedContent("The root of the CAR is not the requested CID")
            if contents.size > limit:  # a few blocks can be linked many times
                raise UploadTooLarge
            await self._publish(pin, car, contents)

    async def _receive(self, pin: Pin, car: CarReceiver, pieces: AsyncGenerator[bytes, None], limit: int) -> None:
        """Receive a CAR. Raises TimeoutError without progress, UploadTooLarge, MalformedContent."""
        async with asyncio.timeout(self._progress_timeout) as deadline:
            counted = 0
            async for piece in pieces:
                if not car.size:
                    await self._set_status(pin, PinState.RETRIEVING)
                if car.size + len(piece) > limit:
                    await car.flush()  # raises if the blocks are wrong
                    raise UploadTooLarge
                await car.write(piece)
                if car.size - counted >= PROGRESS_BYTES:
                    counted = car.size
                    deadline.reschedule(asyncio.get_running_loop().time() + self._progress_timeout)

    async def _publish(self, pin: Pin, car: CarReceiver, contents: CarContents) -> None:
        """Store the file, or discard the content. Raises PinNotFound, StorageQuotaExceeded."""

        def publish(connection: Connection) -> None:
            tenants.lock_tenant(connection, pin.tenant_id)
            current = _lock_waiting_pin(connection, pin)
            mime_type = DIRECTORY if contents.kind in _FOLDERS else mime_sniffing.UNKNOWN
            request = current.request
            metadata = FileMetadata(request.name, request.keyvalues, request.group_id)
            network, size = ContentNetwork.PUBLIC, contents.size
            new = NewFile(pin.tenant_id, network, request.cid, size, mime_type, metadata, contents.files)
            file = self._files.add(connection, new, car.pack_id)
            _set_final_status(connection, pin, PinState.PINNED, file.id)

        try:
            await car.commit(publish)
        except (PinNotFound, StorageQuotaExceeded):
            await self._content.discard(car.pack_id)
            raise

    async def _find_file(self, pin: Pin) -> File | None:
        """Return the tenant's undamaged file with this spelling of the CID, if any."""
        selection = FileFilter(cid=[pin.request.cid])
        found, _ = await self._files.list(pin.tenant_id, ContentNetwork.PUBLIC, selection, None, 1)
        for file in found:
            if not await self._db.read(lambda connection, file=file: is_damaged(connection, file)):
                return file
        return None

    async def _set_status(self, pin: Pin, status: PinState) -> None:
        """Set the state of a waiting pin. Raises PinNotFound."""

        def write(connection: Connection) -> None:
            _lock_waiting_pin(connection, pin)
            store.set_status(connection, pin.id, status, clock.utc_now())

        await self._db.write(write)

    async def _finish(self, pin: Pin, status: PinState, file_id: str | None = None) -> None:
        """Set the final state of a waiting pin. Raises PinNotFound."""

        def write(connection: Connection) -> None:
            tenants.lock_tenant(connection, pin.tenant_id)
            _lock_waiting_pin(connection, pin)
            _set_final_status(connection, pin, status, file_id)

        await self._db.write(write)


class _LocalSource(ContentSource):
    """Public content of this server, of any tenant."""

    def __init__(self, reader: ContentReader) -> None:
        super().__init__("here")
        self._reader = reader

    def car(self, cid: str) -> AsyncGenerator[bytes, None]:
        return export_tree(self._reader, ContentScope(ContentNetwork.PUBLIC), Cid.parse(cid))


def _mark_expired(connection: Connection, operation: Operation, _reason: str) -> None:
    """End the search for a pin whose retrieval has failed."""
    pin = store.get_pin(connection, operation.payload["pin"])
    if pin is not None and pin.status in WAITING:
        tenants.lock_tenant(connection, pin.tenant_id)
        _set_final_status(connection, pin, PinState.EXPIRED, None)


def _find_failure(pin: Pin) -> PinState | None:
    """Return the final state of a pin that cannot be retrieved any more, else None."""
    if clock.utc_now() >= pin.created_at + SEARCH_DURATION:
        return PinState.EXPIRED
    cid = Cid.parse(pin.request.cid)
    if cid.hash != SHA2_256 or cid.codec not in {RAW, DAG_PB}:
        return PinState.INVALID_OBJECT
    try:
        for host in pin.request.hosts:
            http_origin(host)
    except InvalidHostNode:
        return PinState.BAD_HOST_NODE
    return None


def _lock_waiting_pin(connection: Connection, pin: Pin) -> Pin:
    """Lock and return the pin. Raises PinNotFound if it was deleted or another attempt finished it."""
    current = store.get_pin(connection, pin.id, lock=True)
    if current is None or current.status not in WAITING:
        raise PinNotFound
    return current


def _set_final_status(connection: Connection, pin: Pin, status: PinState, file_id: str | None) -> None:
    store.set_status(connection, pin.id, status, clock.utc_now(), file_id)
    start_next_pin(connection, pin.tenant_id)
