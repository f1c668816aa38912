"""Pins by CID: asked for, listed, taken back. The looking and taking in is `retrieve.py`'s."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import Connection

from roost import work
from roost.core import clock, ids, page_cursor
from roost.core.db import Database
from roost.core.page_cursor import PageCursor
from roost.drivers.network.contract import NetworkAnnouncer, PublicNetwork
from roost.identity import tenants
from roost.storage.content.model import ContentNetwork
from roost.storage.files.model import File, FileEvent
from roost.storage.files.service import FileService, get_file
from roost.storage.groups.errors import GroupNotFound
from roost.storage.groups.service import GroupService
from roost.storage.pins import store
from roost.storage.pins.errors import PinNotFound, TooManyHostNodes, TooManyPins
from roost.storage.pins.model import (
    ACTIVE,
    FAILED,
    HOSTS_LIMIT,
    KEPT,
    PAGE_LIMIT,
    QUEUE_LIMIT,
    QUEUED,
    RETRIEVE,
    WAITING_LIMIT,
    Pin,
    PinQuery,
    PinRequest,
    PinState,
)
from roost.storage.unixfs.cid import Cid

_MILLISECOND = timedelta(milliseconds=1)


class PinService:
    def __init__(self, db: Database, files: FileService, network: PublicNetwork) -> None:
        self._db = db
        self._files = files
        self._network = network
        files.add_listener(_let_go)

    async def add(self, tenant_id: str, ask: PinRequest) -> Pin:
        """Look for content from now on. Raises GroupMissing, TooManyHosts, TooManyPins."""
        _check(ask)

        def write(connection: Connection) -> Pin:
            tenants.lock_tenant(connection, tenant_id)
            return _added(connection, tenant_id, ask)

        return await self._db.write(write)

    async def get(self, tenant_id: str, pin_id: str) -> Pin:
        """Raises PinMissing."""
        return await self._db.read(lambda connection: _found(connection, tenant_id, pin_id))

    async def list(
        self, tenant_id: str, wanted: PinQuery, token: str | None, limit: int
    ) -> tuple[Sequence[Pin], str | None]:
        """A page, and the token of the next if there is one. Raises InvalidPage."""
        after = PageCursor.parse(token) if token else None
        limit = min(max(limit, 1), PAGE_LIMIT)
        rows = await self._db.read(lambda connection: store.page(connection, tenant_id, wanted, after, limit + 1))
        return page_cursor.split_page(rows, limit)

    async def slice(self, tenant_id: str, wanted: PinQuery, limit: int, offset: int = 0) -> tuple[Sequence[Pin], int]:
        """Some of the pins, and how many there are."""

        def read(connection: Connection) -> tuple[Sequence[Pin], int]:
            found = store.page(connection, tenant_id, wanted, None, limit, offset)
            return found, store.count(connection, tenant_id, wanted)

        return await self._db.read(read)

    async def delegates(self) -> Sequence[str]:
        """The multiaddrs that whoever has the content may connect to, so that it is found."""
        return await self._network.addresses() if isinstance(self._network, NetworkAnnouncer) else ()

    async def delete(self, tenant_id: str, pin_id: str) -> None:
        """Take a request out of the queue, also one that came to nothing. Raises PinMissing."""

        def remove(connection: Connection) -> None:
            tenants.lock_tenant(connection, tenant_id)
            pin = _found(connection, tenant_id, pin_id)
            if pin.status is PinState.PINNED:
                raise PinNotFound
            store.remove(connection, pin.id)
            next_one(connection, tenant_id)

        await self._db.write(remove)

    async def replace(self, tenant_id: str, pin_id: str, ask: PinRequest) -> Pin:
        """A new pin in place of one; what is pinned already is not fetched again.

        Raises PinMissing, GroupMissing, TooManyHosts, TooManyPins; the old one is as it was then.
        """
        _check(ask)

        def write(connection: Connection) -> Pin:
            tenants.lock_tenant(connection, tenant_id)
            old = _found(connection, tenant_id, pin_id)
            if ask.cid in Cid.parse_spellings(old.ask.cid):
                return _renewed(connection, old, ask)
            self._remove(connection, old)
            return _added(connection, tenant_id, ask)

        return await self._db.write(write)

    async def unpin(self, tenant_id: str, pin_id: str) -> None:
        """Take a pin back, with its file, unless that was there before it or another pin stands for it too.

        Raises PinMissing.
        """

        def write(connection: Connection) -> None:
            tenants.lock_tenant(connection, tenant_id)
            self._remove(connection, _found(connection, tenant_id, pin_id))

        await self._db.write(write)

    def _remove(self, connection: Connection, pin: Pin) -> None:
        if pin.file_id is not None and not store.is_shared(connection, pin):
            file = get_file(connection, pin.tenant_id, ContentNetwork.PUBLIC, pin.file_id)
            if file.created_at >= pin.created_at:
                self._files.remove(connection, file)  # the pin goes along
        store.remove(connection, pin.id)
        next_one(connection, pin.tenant_id)


def next_one(connection: Connection, tenant_id: str) -> None:
    """Begin with the oldest pin that waits for the queue to have room, where it has. The tenant is held."""
    if store.count(connection, tenant_id, PinQuery(ACTIVE)) >= QUEUE_LIMIT:
        return
    pin = store.oldest(connection, tenant_id, PinState.BACKFILLED)
    if pin is not None:
        store.set_status(connection, pin.id, PinState.PRECHECKING, clock.utc_now())
        begin(connection, tenant_id, pin.id)


def begin(connection: Connection, tenant_id: str, pin_id: str) -> None:
    """Add the operation that retrieves the content of a pin; both have the same id."""
    subject = f"pins/{tenant_id}"
    work.add_operation(connection, RETRIEVE, subject, {"pin": pin_id}, tenant_id=tenant_id, operation_id=pin_id)


def _added(connection: Connection, tenant_id: str, ask: PinRequest) -> Pin:
    """Raises GroupMissing, TooManyPins."""
    now = clock.utc_now()
    store.forget(connection, tenant_id, now - KEPT)
    if ask.group_id and not GroupService.find(connection, tenant_id, ContentNetwork.PUBLIC, ask.group_id):
        raise GroupNotFound
    if store.count(connection, tenant_id, PinQuery(QUEUED)) >= WAITING_LIMIT:
        raise TooManyPins
    has_room = store.count(connection, tenant_id, PinQuery(ACTIVE)) < QUEUE_LIMIT
    status = PinState.PRECHECKING if has_room else PinState.BACKFILLED
    pin = Pin(ids.new_id(), tenant_id, ask, status, None, _moment(connection, tenant_id, now), now)
    store.add(connection, pin)
    if has_room:
        begin(connection, tenant_id, pin.id)
    return pin


def _moment(connection: Connection, tenant_id: str, now: datetime) -> datetime:
    """Whole milliseconds, later than any other pin of the tenant: clients page by it, as exact as that."""
    now = now.replace(microsecond=now.microsecond // 1000 * 1000)
    latest = store.latest(connection, tenant_id)
    return now if latest is None or latest < now else latest + _MILLISECOND


def _renewed(connection: Connection, old: Pin, ask: PinRequest) -> Pin:
    """The same pin under another id, with another note."""
    if old.status in FAILED:  # it is looked for anew
        store.remove(connection, old.id)
        return _added(connection, old.tenant_id, ask)
    stays = old.status in {PinState.PINNED, PinState.BACKFILLED}
    status = old.status if stays else PinState.PRECHECKING
    new = Pin(ids.new_id(), old.tenant_id, ask, status, old.file_id, old.created_at, clock.utc_now())
    store.add(connection, new)
    store.remove(connection, old.id)
    if not stays:
        begin(connection, new.tenant_id, new.id)
    return new


def _check(ask: PinRequest) -> None:
    if len(ask.hosts) > HOSTS_LIMIT:
        raise TooManyHostNodes(f"At most {HOSTS_LIMIT} host nodes are allowed")


def _let_go(connection: Connection, change: FileEvent, file: File, _before: File | None) -> None:
    """A pin is there as long as the file that it became."""
    if change is FileEvent.DELETED:
        store.remove_of_file(connection, file.id)


def _found(connection: Connection, tenant_id: str, pin_id: str) -> Pin:
    pin = store.get(connection, pin_id, tenant_id)
    if pin is None:
        raise PinNotFound
    return pin
