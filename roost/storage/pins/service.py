"""Add, list, replace and delete pins by CID; `retrieve.py` retrieves their content."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from roost import work
from roost.core import clock, ids, page_cursor
from roost.core.db import Connection, Database
from roost.core.page_cursor import PageCursor
from roost.drivers.network.contract import NetworkAnnouncer, PublicNetwork
from roost.identity import tenants
from roost.storage.content.model import ContentNetwork
from roost.storage.content.unixfs.cid import Cid
from roost.storage.files.groups.service import get_group
from roost.storage.files.model import File, FileEvent
from roost.storage.files.service import FileService, get_file
from roost.storage.pins import store
from roost.storage.pins.model import (
    ACTIVE,
    FAILED,
    FAILURE_RETENTION,
    HOSTS_LIMIT,
    PAGE_LIMIT,
    QUEUE_LIMIT,
    QUEUED,
    RETRIEVE,
    WAITING_LIMIT,
    Pin,
    PinNotFound,
    PinQuery,
    PinRequest,
    PinState,
    TooManyHostNodes,
    TooManyPins,
)

_MILLISECOND = timedelta(milliseconds=1)


class PinService:
    def __init__(self, db: Database, files: FileService, network: PublicNetwork) -> None:
        self._db = db
        self._files = files
        self._network = network
        files.add_listener(_delete_pins_of_file)

    async def add(self, tenant_id: str, request: PinRequest) -> Pin:
        """Add a pin, which is retrieved in the background. Raises GroupNotFound, TooManyHostNodes, TooManyPins."""
        _check_hosts(request)

        def write(connection: Connection) -> Pin:
            tenants.lock_tenant(connection, tenant_id)
            return _add(connection, tenant_id, request)

        return await self._db.write(write)

    async def get(self, tenant_id: str, pin_id: str) -> Pin:
        """Return a pin. Raises PinNotFound."""
        return await self._db.read(lambda connection: _get_pin(connection, tenant_id, pin_id))

    async def list(
        self, tenant_id: str, query: PinQuery, token: str | None, limit: int
    ) -> tuple[Sequence[Pin], str | None]:
        """Return a page and the token of the next one, if any. Raises InvalidPageToken."""
        after = PageCursor.parse(token) if token else None
        limit = min(max(limit, 1), PAGE_LIMIT)
        rows = await self._db.read_long(
            lambda connection: store.list_pins(connection, tenant_id, query, after, limit + 1), tenant_id
        )
        return page_cursor.split_page(rows, limit)

    async def list_slice(
        self, tenant_id: str, query: PinQuery, limit: int, offset: int = 0
    ) -> tuple[Sequence[Pin], int]:
        """Return pins from an offset, and the total count."""

        def read(connection: Connection) -> tuple[Sequence[Pin], int]:
            found = store.list_pins(connection, tenant_id, query, None, limit, offset)
            return found, store.count_pins(connection, tenant_id, query)

        return await self._db.read_long(read, tenant_id)

    async def list_delegates(self) -> Sequence[str]:
        """Return the multiaddrs of this server's node, to which providers of the content may connect."""
        return await self._network.addresses() if isinstance(self._network, NetworkAnnouncer) else ()

    async def delete(self, tenant_id: str, pin_id: str) -> None:
        """Delete a waiting or failed pin. Raises PinNotFound."""

        def remove(connection: Connection) -> None:
            tenants.lock_tenant(connection, tenant_id)
            pin = _get_pin(connection, tenant_id, pin_id)
            if pin.status is PinState.PINNED:
                raise PinNotFound
            store.delete_pin(connection, pin.id)
            start_next_pin(connection, tenant_id)

        await self._db.write(remove)

    async def replace(self, tenant_id: str, pin_id: str, request: PinRequest) -> Pin:
        """Replace a pin; pinned content is kept. Raises PinNotFound, GroupNotFound, TooManyHostNodes, TooManyPins."""
        _check_hosts(request)

        def write(connection: Connection) -> Pin:
            tenants.lock_tenant(connection, tenant_id)
            old = _get_pin(connection, tenant_id, pin_id)
            if request.cid in Cid.parse_spellings(old.request.cid):
                return _renew(connection, old, request)
            self._remove(connection, old)
            return _add(connection, tenant_id, request)

        return await self._db.write(write)

    async def unpin(self, tenant_id: str, pin_id: str) -> None:
        """Delete a pin, and its file unless the file is older or another pin has it. Raises PinNotFound."""

        def write(connection: Connection) -> None:
            tenants.lock_tenant(connection, tenant_id)
            self._remove(connection, _get_pin(connection, tenant_id, pin_id))

        await self._db.write(write)

    def _remove(self, connection: Connection, pin: Pin) -> None:
        if pin.file_id is not None and not store.is_file_shared(connection, pin):
            file = get_file(connection, pin.tenant_id, ContentNetwork.PUBLIC, pin.file_id)
            if file.created_at >= pin.created_at:
                self._files.remove(connection, file)  # which deletes the pin, too
        store.delete_pin(connection, pin.id)
        start_next_pin(connection, pin.tenant_id)


def start_next_pin(connection: Connection, tenant_id: str) -> None:
    """Start the oldest backfilled pin unless the queue is full. The tenant must be locked."""
    if store.count_pins(connection, tenant_id, PinQuery(ACTIVE)) >= QUEUE_LIMIT:
        return
    pin = store.get_oldest_pin(connection, tenant_id, PinState.BACKFILLED)
    if pin is not None:
        store.set_status(connection, pin.id, PinState.PRECHECKING, clock.utc_now())
        queue_retrieval(connection, tenant_id, pin.id)


def queue_retrieval(connection: Connection, tenant_id: str, pin_id: str) -> None:
    """Add the operation that retrieves the content of a pin; both have the same id."""
    subject = f"pins/{tenant_id}"
    work.add_operation(connection, RETRIEVE, subject, {"pin": pin_id}, tenant_id=tenant_id, operation_id=pin_id)


def _add(connection: Connection, tenant_id: str, request: PinRequest) -> Pin:
    """Add a pin. Raises GroupNotFound, TooManyPins."""
    now = clock.utc_now()
    store.delete_old_failures(connection, tenant_id, now - FAILURE_RETENTION)
    if request.group_id:
        get_group(connection, tenant_id, ContentNetwork.PUBLIC, request.group_id)
    if store.count_pins(connection, tenant_id, PinQuery(QUEUED)) >= WAITING_LIMIT:
        raise TooManyPins
    is_active = store.count_pins(connection, tenant_id, PinQuery(ACTIVE)) < QUEUE_LIMIT
    status = PinState.PRECHECKING if is_active else PinState.BACKFILLED
    pin = Pin(ids.new_id(), tenant_id, request, status, None, _next_creation_time(connection, tenant_id, now), now)
    store.insert_pin(connection, pin)
    if is_active:
        queue_retrieval(connection, tenant_id, pin.id)
    return pin


def _next_creation_time(connection: Connection, tenant_id: str, now: datetime) -> datetime:
    """Return a creation time in whole milliseconds that is unique for the tenant; clients page by it."""
    now = now.replace(microsecond=now.microsecond // 1000 * 1000)
    latest = store.get_latest_creation(connection, tenant_id)
    return now if latest is None or latest < now else latest + _MILLISECOND


def _renew(connection: Connection, old: Pin, request: PinRequest) -> Pin:
    """Replace a pin of the same content; its id and metadata change."""
    if old.status in FAILED:  # search again
        store.delete_pin(connection, old.id)
        return _add(connection, old.tenant_id, request)
    is_settled = old.status in {PinState.PINNED, PinState.BACKFILLED}
    status = old.status if is_settled else PinState.PRECHECKING
    new = Pin(ids.new_id(), old.tenant_id, request, status, old.file_id, old.created_at, clock.utc_now())
    store.insert_pin(connection, new)
    store.delete_pin(connection, old.id)
    if not is_settled:
        queue_retrieval(connection, new.tenant_id, new.id)
    return new


def _check_hosts(request: PinRequest) -> None:
    if len(request.hosts) > HOSTS_LIMIT:
        raise TooManyHostNodes(f"At most {HOSTS_LIMIT} host nodes are allowed")


def _delete_pins_of_file(connection: Connection, change: FileEvent, file: File, _before: File | None) -> None:
    if change is FileEvent.DELETED:
        store.delete_pins_of_file(connection, file.id)


def _get_pin(connection: Connection, tenant_id: str, pin_id: str) -> Pin:
    pin = store.get_pin(connection, pin_id, tenant_id)
    if pin is None:
        raise PinNotFound
    return pin
