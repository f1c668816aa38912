"""Prepared queries return the same rows as ordinary ones, on both databases."""

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from roost.core.db import Database, PreparedQuery

_things = sa.Table(
    "things",
    sa.MetaData(),
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(10)),
    sa.Column("data", sa.LargeBinary),
)
_NAMED = PreparedQuery(
    sa.select(_things.c.data, _things.c.name, _things.c.id)
    .where(_things.c.name == sa.bindparam("name"))
    .order_by(_things.c.id.desc())
    .limit(1)
)
_ROWS = [
    {"id": 1, "name": "a", "data": b"\0one"},
    {"id": 2, "name": "a", "data": b"\xfftwo"},
    {"id": 3, "name": "b", "data": None},
]


@pytest.fixture
def db(bare_url: str) -> Iterator[Database]:
    database = Database(bare_url)
    database.run(_things.metadata.create_all)
    database.run(lambda connection: connection.execute(_things.insert(), _ROWS))
    yield database
    database.close()


@pytest.mark.parametrize(("name", "row"), [("a", (b"\xfftwo", "a", 2)), ("b", (None, "b", 3)), ("c", None)])
async def test_the_first_row_comes_with_its_columns_in_order(
    db: Database, name: str, row: tuple[object] | None
) -> None:
    found = await db.read(lambda connection: _NAMED.first(connection, {"name": name}))
    assert (None if found is None else tuple(found)) == row


async def test_it_sees_the_transaction_that_it_is_asked_in(db: Database) -> None:
    def rename(connection: sa.Connection) -> object:
        connection.execute(_things.update().where(_things.c.id == 3).values(name="new"))
        return _NAMED.first(connection, {"name": "new"})

    assert await db.write(rename) is not None


async def test_each_time_it_sees_what_is_there_by_then(db: Database) -> None:
    """A query keeps no snapshot."""
    for number in range(4, 7):
        row = {"id": number, "name": "a", "data": b""}
        await db.write(lambda connection, row=row: connection.execute(_things.insert().values(row)))
        found = await db.read(lambda connection: _NAMED.first(connection, {"name": "a"}))
        assert found is not None
        assert found[2] == number
