"""Cost of events on writes, and the time from an event to its arrival at connected clients.

The reference of a write is the same write of a database without the recorder. A client notes when a message arrives; an
event has the time at which it was written, just before the commit, by the same clock.
"""

import asyncio
import statistics
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from bench.row import Row
from bench.timing import percentile_95, split_runs, time_in_turns_async
from roost.agents.registry.model import AgentProfile, AgentState
from roost.agents.registry.repository import AgentRepository, find_tenant_id
from roost.core import ids
from roost.core.db import Connection, Database, DataChange, record_change
from roost.core.seal import Sealer
from roost.core.sensitive import Sensitive
from roost.drivers.blob.folder_store import FolderStore
from roost.events.model import EventFilter, EventType
from roost.events.recorder import EventRecorder
from roost.events.service import EventService
from roost.identity import tenants
from roost.identity.caller import Caller, CallerKind, Plan
from roost.migrations import upgrade_database
from roost.storage.content.service import ContentService
from roost.storage.files.service import FileService
from roost.storage.files.uploads.model import UploadMetadata, UploadRequestLimits
from roost.storage.files.uploads.service import UploadService
from tests.support.databases import postgres_copy, run_postgres

_WRITES = 160
_CLIENTS, _EVENTS, _INTERVAL = 50, 60, 0.05


def run(folder: Path) -> Iterator[Row]:
    yield from asyncio.run(_measure_writes(folder))
    local = asyncio.run(_measure_delay(f"sqlite:///{folder / 'delay.db'}", servers=1))
    yield _delay_row(f"event to {_CLIENTS} clients, p95", local, "<= 100 ms")
    with run_postgres() as url:
        for copy in postgres_copy(url, "template0"):
            remote = asyncio.run(_measure_delay(copy, servers=2))
    yield _delay_row("event to clients of another server, p95", remote, "<= 1000 ms")


def _delay_row(name: str, delays: Sequence[float], goal: str) -> Row:
    runs = split_runs(delays)
    return Row(
        name, list(map(percentile_95, runs)), "ms", goal=goal, others={"p50": list(map(statistics.median, runs))}
    )


async def _measure_writes(folder: Path) -> Sequence[Row]:
    """Compare writes with and without the recorder, in turns, because the disk's speed changes."""
    plain, recorded = _open(f"sqlite:///{folder / 'plain.db'}"), _open(f"sqlite:///{folder / 'recorded.db'}")
    EventRecorder(recorded, find_tenant_id)
    rows = list[Row]()
    for name, prepare in (("change of an agent's state", _agent_writes), ("upload of a small file", _upload_writes)):
        writes = [await prepare(db, folder / str(at)) for at, db in enumerate((plain, recorded))]
        without, with_events = await time_in_turns_async(*writes, rounds=_WRITES)
        rows.append(Row(f"{name}, p50", with_events, "ms", "without events", without, "<= 1.3 x"))
    plain.close()
    recorded.close()
    return rows


async def _agent_writes(db: Database, _: Path) -> Callable[[], Awaitable[object]]:
    agents = AgentRepository(db, Sealer(Sensitive(bytes(32))), {Plan.PAID: 9}, "host")

    def create(connection: Connection) -> str:
        tenant = tenants.ensure_tenant(connection, "acme", Plan.PAID)
        return agents.create(connection, tenant.id, AgentProfile("ada", None, None, None, None), "hermes", "1").id

    agent_id = await db.write(create)

    def change(connection: Connection) -> None:
        for state in (AgentState.RUNNING, AgentState.STARTING):
            agents.set_state(connection, agent_id, state)

    return lambda: db.write(change)


async def _upload_writes(db: Database, folder: Path) -> Callable[[], Awaitable[object]]:
    files = FileService(db)
    uploads = UploadService(db, ContentService(db, FolderStore(folder)), files, dict.fromkeys(Plan, 2**30))
    tenant = await db.write(lambda connection: tenants.ensure_tenant(connection, "acme", Plan.PAID))
    order = UploadRequestLimits(tenant.id)

    async def upload() -> None:
        async with uploads.begin(order) as begun:
            await begun.write(ids.new_token("file").encode() * 20)
            await begun.end_file("a.txt")
            await begun.finish(UploadMetadata())

    return upload


async def _measure_delay(url: str, servers: int) -> list[float]:
    """Return the milliseconds from each event to its arrival at each client of the last server."""
    delays = list[float]()
    opened = [_open(url)]
    opened += [Database(url) for _ in range(servers - 1)]
    EventRecorder(opened[0], lambda *_: None)
    async with _serving(opened[-1]) as service:
        clients = [asyncio.create_task(_receive(service, f"key {number}", delays)) for number in range(_CLIENTS)]
        await asyncio.sleep(0.5)
        for number in range(_EVENTS):
            change = DataChange("secret", "changed", str(number), "tenant", data={"name": "a"})
            await opened[0].write(lambda connection, change=change: record_change(connection, change))
            await asyncio.sleep(_INTERVAL)
        async with asyncio.timeout(30):
            await asyncio.gather(*clients)
    for db in opened:
        db.close()
    return delays


async def _receive(service: EventService, key: str, delays: list[float]) -> None:
    caller, received = Caller(CallerKind.SERVICE, "tenant", key_id=key), 0
    with service.follow(caller, EventFilter(), None) as events:
        async with aclosing(events):
            while received < _EVENTS:
                if (event := await anext(events)).type is not EventType.HEARTBEAT:
                    delays.append((datetime.now(UTC) - event.at).total_seconds() * 1000)
                    received += 1


@asynccontextmanager
async def _serving(db: Database) -> AsyncIterator[EventService]:
    service = EventService(db)
    service.start()
    try:
        yield service
    finally:
        await service.stop()


def _open(url: str) -> Database:
    db = Database(url)
    upgrade_database(db)
    return db
