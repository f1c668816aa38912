"""A failed insert leaves the transaction usable, on both databases."""

from datetime import UTC, datetime

import sqlalchemy as sa
from sqlalchemy import Connection

from roost.core.db import Database, insert_many, insert_or_ignore, update_or_ignore
from roost.identity import store

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def add(connection: Connection, tenant_id: str, name: str) -> bool:
    row = {"id": tenant_id, "name": name, "plan": "free", "created_at": NOW}
    return insert_or_ignore(connection, store.tenants.insert().values(row))


def test_the_second_of_two(database: Database) -> None:
    assert database.run(lambda connection: add(connection, "1", "a")) is True
    assert database.run(lambda connection: add(connection, "1", "b")) is False
    assert database.run(lambda connection: add(connection, "2", "a")) is False
    assert database.run(lambda connection: store.find_tenant(connection, "2")) is None


def test_the_transaction_goes_on(database: Database) -> None:
    def three(connection: Connection) -> list[bool]:
        return [add(connection, "1", "a"), add(connection, "2", "a"), add(connection, "3", "c")]

    assert database.run(three) == [True, False, True]
    found = [database.run(lambda connection, i=i: store.find_tenant(connection, i)) for i in ("1", "2", "3")]
    assert [one and one.name for one in found] == ["a", None, "c"]


def test_many_rows_with_names_that_are_words_of_sql(database: Database) -> None:
    table = sa.Table(
        "odd order",
        sa.MetaData(),
        sa.Column("offset", sa.Integer, primary_key=True),
        sa.Column("select", sa.String(20)),
        sa.Column("data", sa.LargeBinary),
    )
    rows = [
        {"offset": number, "select": "it's %s :x", "data": bytes([number]) if number % 2 else None}
        for number in range(9)
    ]

    def work(connection: Connection) -> list[dict[str, object]]:
        table.create(connection)
        insert_many(connection, table, rows)
        insert_many(connection, table, [])
        return [dict(row) for row in connection.execute(table.select().order_by(table.c.offset)).mappings()]

    assert database.run(work) == rows


def test_an_update_that_a_constraint_forbids(database: Database) -> None:
    def rename(name: str) -> bool:
        update = store.tenants.update().where(store.tenants.c.id == "2").values(name=name)
        return database.run(lambda connection: update_or_ignore(connection, update))

    database.run(lambda connection: [add(connection, "1", "a"), add(connection, "2", "b")])
    assert [rename("a"), rename("c")] == [False, True]
    found = database.run(lambda connection: store.find_tenant(connection, "2"))
    assert found is not None
    assert found.name == "c"
