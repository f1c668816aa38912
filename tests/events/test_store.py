"""Numbers without gaps, and the deletion of old and surplus events."""

from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection

from roost.core.db import Database
from roost.events import store
from roost.events.model import Event, EventBounds, EventType

NOW = datetime(2026, 5, 1, tzinfo=UTC)


async def add(db: Database, tenant_id: str, count: int, at: datetime = NOW) -> None:
    def insert(connection: Connection) -> None:
        first = store.take_numbers(connection, tenant_id, count)
        store.insert_events(
            connection,
            [
                Event(tenant_id, number, EventType.SECRET_CHANGED, at, "secret", f"s{number}", None, {"name": "\ud800"})
                for number in range(first, first + count)
            ],
        )

    await db.write(insert)


async def test_each_tenant_counts_from_one_without_gaps(database: Database) -> None:
    await add(database, "a", 2)
    await add(database, "b", 1)
    await add(database, "a", 3)
    events = await database.read(lambda connection: store.list_events(connection, "a", 1, 3))
    assert [event.number for event in events] == [2, 3, 4]
    assert (events[0].subject_id, events[0].at, events[0].data) == ("s2", NOW, {"name": "\ud800"})
    assert await database.read(lambda c: store.list_last_numbers(c, ["a", "b", "c"])) == {"a": 5, "b": 1}
    assert await database.read(lambda c: store.get_bounds(c, "c")) == EventBounds(1, 0)


async def test_old_and_surplus_events_are_deleted_in_batches(database: Database) -> None:
    await add(database, "old", 3, NOW - timedelta(hours=2))
    await add(database, "old", 2)
    await add(database, "many", 9)
    await add(database, "few", 1)
    found = await database.read(lambda c: store.list_outdated(c, NOW - timedelta(hours=1), 5, 100))
    assert found == {"old": 3, "many": 4}
    deleted = [await database.write(lambda c: store.delete_events(c, "old", 3, 2)) for _ in range(3)]
    assert deleted == [2, 1, 0]
    assert await database.read(lambda c: store.get_bounds(c, "old")) == EventBounds(4, 5)
    await add(database, "old", 1)
    assert [one.number for one in await database.read(lambda c: store.list_events(c, "old", 0, 9))] == [4, 5, 6]
