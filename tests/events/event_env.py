"""Events over a database: writers, streams and what they receive."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager

from sqlalchemy import Connection

from roost.core.db import Database, DataChange, record_change
from roost.events.model import Event, EventFilter, EventType
from roost.events.recorder import EventRecorder
from roost.events.service import EventService
from roost.identity.caller import Caller, CallerKind

TENANT, OTHER = "tenant", "other"
AGENTS = {"ada": TENANT, "bob": OTHER}


def caller(tenant_id: str = TENANT, key_id: str = "key", *scopes: str) -> Caller:
    return Caller(CallerKind.SERVICE, tenant_id, key_id=key_id, scopes=frozenset(scopes))


def find_tenant(_: Connection, agent_id: str) -> str | None:
    return AGENTS.get(agent_id)


def secret(name: str, tenant_id: str | None = TENANT, agent_id: str | None = None) -> DataChange:
    return DataChange("secret", "changed", name, tenant_id, agent_id, {"name": name})


async def write(db: Database, *changes: DataChange) -> None:
    def record(connection: Connection) -> None:
        for change in changes:
            record_change(connection, change)

    await db.write(record)


@asynccontextmanager
async def serving(db: Database) -> AsyncIterator[EventService]:
    """Run the recorder and the service of one server."""
    EventRecorder(db, find_tenant, unreported={"quiet"})
    service = EventService(db)
    service.start()
    yield service
    await service.stop()


@asynccontextmanager
async def following(
    service: EventService, who: Caller | None = None, after: int | None = None, **wanted: object
) -> AsyncIterator[AsyncGenerator[Event]]:
    with service.follow(who or caller(), EventFilter(**wanted), after) as events:  # type: ignore[arg-type] - its fields
        async with aclosing(events):
            yield events


async def take(events: AsyncGenerator[Event], count: int, seconds: float = 10) -> Sequence[Event]:
    """Return the next events that are no heartbeats."""
    found = list[Event]()
    async with asyncio.timeout(seconds):
        while len(found) < count:
            event = await anext(events)
            if event.type is not EventType.HEARTBEAT:
                found.append(event)
    return found


def ids(events: Sequence[Event]) -> list[str]:
    return [event.subject_id for event in events]
