"""A table in memory follows its own process at once, and other servers of the database within a second."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import closing

import pytest
import sqlalchemy as sa
from sqlalchemy import Connection

from roost.agents.network.routes.service import MIRROR
from roost.core.db import Database
from roost.core.db.table_mirror import TableMirror

values = sa.table("settings_of_test", sa.column("key"), sa.column("value"))


def load(connection: Connection, key: str | None) -> Mapping[str, int]:
    query = sa.select(values.c.key, values.c.value)
    if key is not None:
        query = query.where(values.c.key == key)
    return {row.key: row.value for row in connection.execute(query)}


@pytest.fixture
async def mirror(database: Database) -> AsyncIterator[TableMirror[int]]:
    await database.write(
        lambda connection: connection.execute(sa.text("CREATE TABLE settings_of_test (key TEXT, value INT)"))
    )
    mirror = TableMirror(database, MIRROR, load)
    await mirror.start()
    yield mirror
    await mirror.stop()


async def put(database: Database, mirror: TableMirror[int], key: str, value: int | None) -> None:
    def change(connection: Connection) -> None:
        connection.execute(values.delete().where(values.c.key == key))
        if value is not None:
            connection.execute(values.insert().values(key=key, value=value))
        mirror.publish_change(connection, key)

    await database.write(change)


async def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


async def test_changes_of_this_process(database: Database, mirror: TableMirror[int]) -> None:
    told: list[str] = []
    mirror.subscribe(told.append)
    await put(database, mirror, "a", 1)
    await mirror.refresh("a")
    assert (mirror.get("a"), mirror.get("b"), told) == (1, None, ["a"])
    await mirror.refresh("a")
    assert told == ["a"]  # nothing has changed
    await put(database, mirror, "b", 2)
    await until(lambda: mirror.get("b") == 2)  # without a refresh
    await put(database, mirror, "a", None)
    await until(lambda: mirror.get("a") is None)
    assert told == ["a", "b", "a"]


@pytest.mark.parametrize("dialect", [pytest.param("postgresql", marks=pytest.mark.postgres)])
async def test_changes_of_another_server(database_url: str, database: Database, mirror: TableMirror[int]) -> None:
    told: list[str] = []
    mirror.subscribe(told.append)
    with closing(Database(database_url)) as other:
        elsewhere = TableMirror(other, MIRROR, load)
        for value in (1, None):
            await put(other, elsewhere, "a", value)
            await until(lambda value=value: mirror.get("a") == value)
    assert told == ["a", "a"]


async def test_a_change_that_fails_is_none(database: Database, mirror: TableMirror[int]) -> None:
    def fail(connection: Connection) -> None:
        mirror.publish_change(connection, "a")
        raise LookupError

    with pytest.raises(LookupError):
        await database.write(fail)
    assert mirror.get("a") is None
