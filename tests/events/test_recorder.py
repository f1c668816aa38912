"""Changes become events of their transaction: none is lost, invented, or seen before an earlier one."""

import asyncio
import signal
import sys
import threading
from dataclasses import replace

import pytest
from sqlalchemy import Connection, text

from roost.core.actor import SERVER, Actor, ActorKind, acting_as
from roost.core.db import Database, DataChange, record_change
from roost.events import store
from roost.events.model import Event, EventType
from roost.events.recorder import EventRecorder
from tests.events.event_env import OTHER, TENANT, find_tenant, ids, secret, write


@pytest.fixture(autouse=True)
def recorder(database: Database) -> EventRecorder:
    return EventRecorder(database, find_tenant, unreported={"quiet"})


async def stored(db: Database, tenant_id: str = TENANT, after: int = 0) -> list[Event]:
    return list(await db.read(lambda connection: store.list_events(connection, tenant_id, after, 1000)))


def operation(operation_id: str, kind: str, agent_id: str | None, state: str = "done") -> DataChange:
    return DataChange("operation", "changed", operation_id, None, agent_id, {"kind": kind, "state": state})


async def test_a_transaction_that_fails_leaves_no_event(database: Database) -> None:
    def fail(connection: Connection) -> None:
        record_change(connection, secret("lost"))
        raise ValueError

    with pytest.raises(ValueError):
        await database.write(fail)
    await write(database, secret("kept"))
    assert ids(await stored(database)) == ["kept"]


async def test_changes_go_to_their_tenants_and_those_of_one_subject_become_one(database: Database) -> None:
    await write(
        database,
        secret("a"),
        secret("b", OTHER),
        secret("c", None, "ada"),
        operation("o", "agent.start", "ada", "pending"),
        operation("o", "agent.start", "ada", "running"),
        operation("hidden", "quiet", "ada"),
        operation("of no tenant", "agent.start", "gone"),
    )
    mine, others = await stored(database), await stored(database, OTHER)
    assert (ids(mine), ids(others)) == (["a", "c", "o"], ["b"])
    assert (mine[2].type, mine[2].agent_id, mine[2].data["state"]) == (EventType.OPERATION_CHANGED, "ada", "running")


async def test_an_event_has_the_actor_of_its_change_or_of_the_task(database: Database) -> None:
    ada, agent = Actor(ActorKind.KEY, TENANT, "k1", "ada \ud800"), Actor(ActorKind.AGENT, TENANT, "ada")
    await write(database, secret("by nobody"))
    with acting_as(ada):
        await write(database, secret("by ada"), replace(secret("by the agent"), actor=agent))
    assert [one.actor for one in await stored(database)] == [SERVER, ada, agent]


async def test_a_tenant_does_not_see_the_actors_of_others(database: Database) -> None:
    with acting_as(Actor(ActorKind.SESSION, TENANT, "k1", "ada")):
        await write(
            database, secret("theirs", OTHER), replace(secret("mine"), actor=Actor(ActorKind.KEY, OTHER, "k2", "eve"))
        )
    assert [one.actor for one in (*await stored(database, OTHER), *await stored(database))] == [SERVER, SERVER]


async def test_an_unknown_type_undoes_the_transaction(database: Database) -> None:
    with pytest.raises(ValueError, match=r"weather\.changed"):
        await write(database, DataChange("weather", "changed", "w", TENANT))


def test_a_change_without_an_event_loop_is_stored(database: Database) -> None:
    database.run(lambda connection: record_change(connection, secret("cli")))
    assert ids(database.run(lambda connection: store.list_events(connection, TENANT, 0, 9))) == ["cli"]


async def test_a_reader_never_sees_a_later_event_before_an_earlier_one(database: Database, dialect: str) -> None:
    """On PostgreSQL a slow transaction draws its number last; sequences would let the fast ones pass it."""
    begun, go = threading.Event(), threading.Event()

    def slow(connection: Connection) -> None:
        record_change(connection, secret("slow"))
        connection.execute(text("SELECT 1"))
        begun.set()
        go.wait(10)

    writing = asyncio.create_task(database.write(slow))
    if dialect == "postgresql":
        await asyncio.to_thread(begun.wait, 10)
        await write(database, secret("fast"))
        assert [one.number for one in await stored(database)] == [1]
    go.set()
    await writing
    seen = list[int]()

    async def read() -> None:
        while len(seen) < 200:
            seen.extend(one.number for one in await stored(database, after=seen[-1] if seen else 0))
            await asyncio.sleep(0)

    async def add(name: str) -> None:
        for number in range(25):
            await write(database, secret(f"{name}{number}"), secret(f"{name}{number}", OTHER))

    async with asyncio.timeout(30):
        await asyncio.gather(read(), *(add(name) for name in "abcdefgh"))
    assert seen == list(range(1, len(seen) + 1))


_WRITER = """
import asyncio, sys
from sqlalchemy import text
from roost.core.db import DataChange, Database, record_change
from roost.events.recorder import EventRecorder

async def work():
    database = Database(sys.argv[1])
    EventRecorder(database, lambda connection, agent_id: None)

    async def add(name):
        def insert(connection):
            row = text("INSERT INTO tenants (id, name, plan, created_at) VALUES (:id, :id, 'free', 1)")
            connection.execute(row, {"id": name})
            record_change(connection, DataChange("agent", "created", name, "tenant"))

        await database.write(insert)
        print(name, flush=True)

    async def add_many(writer):
        for number in range(100_000):
            await add(f"{writer}-{number}")

    await asyncio.gather(*map(add_many, "abcd"))

asyncio.run(work())
"""


async def test_a_killed_server_leaves_an_event_for_each_row(database: Database, database_url: str) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _WRITER, database_url, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout
    for _ in range(60):
        assert await asyncio.wait_for(process.stdout.readline(), 30)
    process.send_signal(signal.SIGKILL)
    await process.communicate()
    rows = await database.read(lambda connection: set(connection.execute(text("SELECT id FROM tenants")).scalars()))
    events = await stored(database)
    assert len(rows) >= 60
    assert set(ids(events)) == rows
    assert [one.number for one in events] == list(range(1, len(rows) + 1))
