from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from roost.core.db import Connection, Database, UtcTime, page_by_creation
from roost.core.page_cursor import PageCursor, split_page

NOW = datetime(2026, 11, 21, 1, 2, 3, 456789, tzinfo=UTC)
ROWS = [("b", NOW), ("a", NOW), ("d", NOW), ("c", NOW + timedelta(microseconds=1)), ("e", NOW - timedelta(days=1))]
OLDEST_FIRST = ["e", "a", "b", "d", "c"]

things = sa.Table(
    "things", sa.MetaData(), sa.Column("id", sa.String(1), primary_key=True), sa.Column("created_at", UtcTime)
)


@pytest.fixture
def filled(database: Database) -> Database:
    def fill(connection: Connection) -> None:
        things.create(connection)
        connection.execute(things.insert(), [{"id": name, "created_at": at} for name, at in ROWS])

    database.run(fill)
    return database


def read_page(database: Database, after: PageCursor | None, limit: int, *, ascending: bool) -> Sequence[Any]:
    query = page_by_creation(sa.select(things), things.c.created_at, things.c.id, after, ascending=ascending).limit(
        limit
    )
    return database.run(lambda connection: connection.execute(query).all())


@pytest.mark.parametrize("ascending", [True, False])
def test_pages_follow_on_each_other_also_within_one_moment(filled: Database, ascending: bool) -> None:
    seen: list[str] = []
    token: str | None = ""
    while token is not None:
        after = PageCursor.parse(token) if token else None
        rows, token = split_page(read_page(filled, after, 3, ascending=ascending), 2)
        assert len(rows) <= 2
        seen += [row.id for row in rows]
    assert seen == (OLDEST_FIRST if ascending else OLDEST_FIRST[::-1])


def test_a_place_whose_row_is_gone_leads_on_all_the_same(filled: Database) -> None:
    rows = read_page(filled, PageCursor(NOW, "c"), 10, ascending=False)
    assert [row.id for row in rows] == ["b", "a", "e"]
