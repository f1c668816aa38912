from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import StatementError

from roost.core.db import Connection, Database, JsonText, UtcTime

_values = sa.Table(
    "values_",
    sa.MetaData(),
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("time", UtcTime),
    sa.Column("json", JsonText),
)


@pytest.fixture
def db(bare_url: str) -> Iterator[Database]:
    database = Database(bare_url)
    database.run(_values.metadata.create_all)
    yield database
    database.close()


async def _round_trip(db: Database, column: str, value: object) -> object:
    def write(connection: Connection) -> None:
        connection.execute(_values.delete())
        connection.execute(_values.insert().values(id=1, **{column: value}))

    await db.write(write)
    return await db.read(lambda connection: connection.execute(sa.select(_values.c[column])).scalar_one())


@pytest.mark.parametrize(
    "moment",
    [
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        datetime(2038, 1, 19, 3, 14, 8, 1, tzinfo=UTC),
        datetime.min.replace(tzinfo=UTC),
        datetime.max.replace(tzinfo=UTC),
    ],
    ids=str,
)
async def test_times_keep_every_microsecond(db: Database, moment: datetime) -> None:
    assert await _round_trip(db, "time", moment) == moment


async def test_times_come_back_in_utc(db: Database) -> None:
    local = datetime(2026, 3, 1, 1, 30, tzinfo=timezone(timedelta(hours=5, minutes=45)))
    back = await _round_trip(db, "time", local)
    assert back == local
    assert isinstance(back, datetime)
    assert back.tzinfo is UTC


async def test_a_time_without_a_zone_is_refused(db: Database) -> None:
    with pytest.raises(StatementError, match="time zone"):
        await _round_trip(db, "time", datetime(2026, 1, 1))  # noqa: DTZ001 - refused values


async def test_times_sort_as_moments(db: Database) -> None:
    moments = [datetime(year, 1, 1, 0, 0, 0, micro, tzinfo=UTC) for year in (1, 1960, 1970, 9999) for micro in (0, 1)]

    def write(connection: Connection) -> None:
        for number, moment in enumerate(reversed(moments)):
            connection.execute(_values.insert().values(id=number, time=moment))

    await db.write(write)
    query = sa.select(_values.c.time).order_by(_values.c.time)
    assert await db.read(lambda connection: connection.execute(query).scalars().all()) == moments


@pytest.mark.parametrize(
    "value",
    [
        {},
        [],
        "",
        0,
        False,
        {"a": [1, 2.5, None, {"b": "ü€𐍈"}]},
        2**80,
        "\x00 and \ud800 fit",
        '"quoted" \\ \n',
        {"deep": [[[[[[[[]]]]]]]]},
    ],
    ids=repr,
)
async def test_json_comes_back_as_it_went(db: Database, value: object) -> None:
    back = await _round_trip(db, "json", value)
    assert back == value
    assert type(back) is type(value)


async def test_none_is_null(db: Database) -> None:
    assert await _round_trip(db, "json", None) is None
    assert await _round_trip(db, "time", None) is None
    query = sa.select(sa.func.count()).where(_values.c.json.is_(None), _values.c.time.is_(None))
    assert await db.read(lambda connection: connection.execute(query).scalar_one()) == 1


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, b"bytes"], ids=repr)
async def test_values_outside_json_are_refused(db: Database, value: object) -> None:
    with pytest.raises(StatementError):
        await _round_trip(db, "json", value)
