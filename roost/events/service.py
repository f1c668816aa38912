"""Streams of a tenant's events, over the events that all servers of the database store."""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial

from sqlalchemy import Connection

from roost.core import clock
from roost.core.db import Database
from roost.core.periodic import PeriodicTask
from roost.events import store
from roost.events.model import (
    MAX_EVENTS,
    MAX_STREAMS,
    OLDEST,
    RETENTION,
    Event,
    EventBounds,
    EventFilter,
    EventType,
    TooManyEventStreams,
    list_visible_types,
)
from roost.events.recorder import TOPIC
from roost.identity.caller import Caller

KEPT_EVENTS = 256


class EventFeed:
    """Events after the number at which the feed began, the last `KEPT_EVENTS` of them.

    A stream holds only the number of its last event, so a slow one costs no memory. One that is further behind reads
    the database.
    """

    def __init__(self) -> None:
        self.streams = 0
        self.last: int | None = None
        """Number of the last event; None before the first look at the database."""
        self._events = deque[Event](maxlen=KEPT_EVENTS)
        self._advanced = asyncio.Event()

    def advance(self, last: int, events: Sequence[Event]) -> None:
        """Append the events that follow the last one; the first call begins the feed at `last`."""
        if self.last is None:
            self.last = last
        self._events.extend(events)
        if events:
            self.last = events[-1].number
        self._advanced.set()
        self._advanced.clear()

    def list_after(self, number: int) -> Sequence[Event] | None:
        """List the events after a number; None if some of them are not in memory."""
        if self.last is None or number < self.last - len(self._events):
            return None
        missing = max(self.last - number, 0)
        return list(self._events)[len(self._events) - missing :]

    async def wait(self, number: int, seconds: float) -> None:
        """Wait until there is an event after a number, or for `seconds`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.last is None or self.last <= number:
                    await self._advanced.wait()


HEARTBEAT_SECONDS = 15.0
_POLL_SECONDS = 0.5  # for the events of other servers; those of this one wake the streams
_SWEEP_SECONDS = 30.0
_PAGE = 200
_SWEPT_TENANTS, _SWEPT_EVENTS = 100, 1000


class EventService:
    def __init__(self, db: Database) -> None:
        self._db = db
        self._feeds: dict[str, EventFeed] = {}
        self._streams = Counter[str]()
        self._changed = set[str]()
        """Tenants with new events of this server, and those whose feed begins."""
        self._next_poll = 0.0
        self._poll_task = PeriodicTask("event streams", self._poll, _POLL_SECONDS)
        self._sweep_task = PeriodicTask("event sweep", self.sweep, _SWEEP_SECONDS)
        db.subscribe(self._wake)

    def start(self) -> None:
        self._poll_task.start()
        self._sweep_task.start(_SWEEP_SECONDS)

    async def stop(self) -> None:
        await self._poll_task.stop()
        await self._sweep_task.stop()

    @contextmanager
    def follow(self, caller: Caller, wanted: EventFilter, after: int | None) -> Generator[AsyncGenerator[Event]]:
        """Stream the events after a number, or from now on, that the caller may see. Raises TooManyEventStreams.

        A heartbeat follows the stored events, and comes after each 15 s without another item; its number is the
        position of the stream. If events after the position are deleted, an event `reset` has the new position.
        """
        credential = caller.key_id or f"agent/{caller.agent_id}"
        if self._streams[credential] >= MAX_STREAMS:
            raise TooManyEventStreams(retry_after=10)
        visible = EventFilter(
            wanted.types & list_visible_types(caller),
            caller.agent_id or wanted.agent_id,
            shows_actors=caller.agent_id is None,  # who has an agent's token may be no member of the tenant
        )
        feed = self._feeds.setdefault(caller.tenant_id, EventFeed())
        self._wake(frozenset({TOPIC + caller.tenant_id}))  # a new feed has not begun yet
        feed.streams += 1
        self._streams[credential] += 1
        try:
            yield self._follow(feed, caller.tenant_id, visible, after)
        finally:
            self._streams[credential] -= 1
            if not self._streams[credential]:
                del self._streams[credential]
            feed.streams -= 1
            if not feed.streams:
                del self._feeds[caller.tenant_id]

    async def sweep(self) -> int:
        """Delete old and surplus events; return how many."""
        deleted = 0
        outdated = await self._db.read_long(
            lambda connection: store.list_outdated(connection, clock.utc_now() - RETENTION, MAX_EVENTS, _SWEPT_TENANTS)
        )
        for tenant_id, until in outdated.items():
            while count := await self._delete(tenant_id, until):
                deleted += count
        return deleted

    async def _delete(self, tenant_id: str, until: int) -> int:
        return await self._db.write(lambda connection: store.delete_events(connection, tenant_id, until, _SWEPT_EVENTS))

    async def _follow(
        self, feed: EventFeed, tenant_id: str, visible: EventFilter, after: int | None
    ) -> AsyncGenerator[Event]:
        number = await self._find_start(tenant_id, after)
        beat, is_live = clock.monotonic_seconds() + HEARTBEAT_SECONDS, False
        while True:
            events = feed.list_after(number) or ()
            if not events:
                bounds, events = await self._read(tenant_id, number)
                if not bounds.allow(number):
                    number, events = bounds.last, ()
                    yield _message(tenant_id, EventType.RESET, number)
            for event in events:
                number = event.number
                if visible.matches(event):
                    yield visible.redact(event)
                    beat = clock.monotonic_seconds() + HEARTBEAT_SECONDS
            if not events and (not is_live or clock.monotonic_seconds() >= beat):
                is_live = True
                yield _message(tenant_id, EventType.HEARTBEAT, number)
                beat = clock.monotonic_seconds() + HEARTBEAT_SECONDS
            if is_live:
                await feed.wait(number, beat - clock.monotonic_seconds())

    async def _find_start(self, tenant_id: str, after: int | None) -> int:
        if after is not None and after != OLDEST:
            return after
        bounds = await self._db.read(lambda connection: store.get_bounds(connection, tenant_id))
        return bounds.last if after is None else bounds.first - 1

    async def _read(self, tenant_id: str, after: int) -> tuple[EventBounds, Sequence[Event]]:
        """Return a page of events after a number, and the bounds of that moment."""
        return await self._db.read(
            lambda connection: (
                store.get_bounds(connection, tenant_id),
                store.list_events(connection, tenant_id, after, _PAGE),
            )
        )

    def _wake(self, topics: frozenset[str]) -> None:
        changed = {topic.removeprefix(TOPIC) for topic in topics if topic.startswith(TOPIC)} & self._feeds.keys()
        if changed:
            self._changed |= changed
            self._poll_task.wake()

    async def _poll(self) -> None:
        """Read new events of the tenants that changed here, and twice a second of all that have streams."""
        if (now := clock.monotonic_seconds()) >= self._next_poll:
            self._next_poll = now + _POLL_SECONDS
            self._changed |= self._feeds.keys()
        feeds = {tenant_id: self._feeds[tenant_id] for tenant_id in self._changed if tenant_id in self._feeds}
        self._changed.clear()
        known = {tenant_id: feed.last for tenant_id, feed in feeds.items()}
        while known:
            pages = await self._db.read(partial(_read_new, known))
            for tenant_id, (last, events) in pages.items():
                feeds[tenant_id].advance(last, events)
            known = {tenant_id: feeds[tenant_id].last for tenant_id, (_, events) in pages.items() if events}


def _read_new(known: Mapping[str, int | None], connection: Connection) -> Mapping[str, tuple[int, Sequence[Event]]]:
    """Return the last number of each tenant, and a page of the events after the known ones."""
    numbers = store.list_last_numbers(connection, known.keys())

    def list_new(tenant_id: str, last: int, after: int | None) -> Sequence[Event]:
        if after is None or after >= last:
            return ()
        return store.list_events(connection, tenant_id, after, KEPT_EVENTS)

    lasts = {tenant_id: numbers.get(tenant_id, 0) for tenant_id in known}
    return {tenant_id: (last, list_new(tenant_id, last, known[tenant_id])) for tenant_id, last in lasts.items()}


def _message(tenant_id: str, kind: EventType, number: int) -> Event:
    return Event(tenant_id, number, kind, clock.utc_now())
