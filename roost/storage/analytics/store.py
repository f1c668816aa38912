"""The table of what gateways served, and every line of SQL about it."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from roost.core.db import Connection, metadata
from roost.storage.analytics.model import LONGEST_AGENT, LONGEST_NAME, LONGEST_REFERER, UNKNOWN, HitAggregate, HitCount
from roost.storage.analytics.query import (
    AnalyticsDimension,
    AnalyticsMetric,
    AnalyticsOrder,
    AnalyticsQuery,
    DimensionCount,
)

# No foreign keys: what was served stays counted after its gateway is gone.
served = sa.Table(
    "storage_gateway_served",
    metadata,
    sa.Column("tenant_id", sa.String(36), primary_key=True),
    sa.Column("day", sa.String(10), primary_key=True, index=True),
    sa.Column("digest", sa.LargeBinary(16), primary_key=True),
    sa.Column("gateway_id", sa.String(36), nullable=False),
    sa.Column("cid", sa.String(255), nullable=False),
    sa.Column("file_name", sa.String(LONGEST_NAME), nullable=False),
    sa.Column("status", sa.Integer, nullable=False),
    sa.Column("user_agent", sa.String(LONGEST_AGENT), nullable=False),
    sa.Column("referer", sa.String(LONGEST_REFERER), nullable=False),
    sa.Column("requests", sa.BigInteger, nullable=False),
    sa.Column("bandwidth", sa.BigInteger, nullable=False),
)

_COLUMNS: Mapping[AnalyticsDimension, sa.Column[str]] = {
    AnalyticsDimension.CID: served.c.cid,
    AnalyticsDimension.FILE_NAME: served.c.file_name,
    AnalyticsDimension.USER_AGENT: served.c.user_agent,
    AnalyticsDimension.REFERER: served.c.referer,
}
_MEASURES = {measure: sa.func.sum(served.c[measure.value]).label(f"all_{measure.value}") for measure in AnalyticsMetric}


def add(connection: Connection, lines: Mapping[HitAggregate, HitCount]) -> None:
    """Add to what each line has counted; in the order of the key, so that two writers cannot lock each other out."""
    insert = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}[connection.dialect.name](served)
    upsert = insert.on_conflict_do_update(
        index_elements=list(served.primary_key.columns),
        set_={measure.value: served.c[measure.value] + insert.excluded[measure.value] for measure in AnalyticsMetric},
    )
    ordered = sorted(lines.items(), key=lambda item: (item[0].tenant_id, item[0].day, item[0].digest))
    connection.execute(upsert, [_row(line, tally) for line, tally in ordered])


def count(connection: Connection, tenant_id: str, day: date) -> int:
    """How many lines a tenant has of a day."""
    query = sa.select(sa.func.count()).select_from(served).where(*_of(tenant_id, day))
    return connection.execute(query).scalar_one()


def digests(connection: Connection, tenant_id: str, day: date) -> set[bytes]:
    return set(connection.execute(sa.select(served.c.digest).where(*_of(tenant_id, day))).scalars())


def top(
    connection: Connection, meant: AnalyticsQuery, attribute: AnalyticsDimension, order: AnalyticsOrder
) -> Sequence[DimensionCount]:
    """What was asked for, by an attribute that is kept."""
    column, measure = _COLUMNS[attribute], _MEASURES[order.measure or AnalyticsMetric.REQUESTS]
    query = sa.select(column, *_MEASURES.values()).where(*_conditions(meant)).group_by(column)
    query = query.order_by(measure if order.ascending else measure.desc(), column).limit(order.limit)
    return [DimensionCount(row[0], _tally(row)) for row in connection.execute(query)]


def by_day(connection: Connection, meant: AnalyticsQuery) -> Mapping[date, HitCount]:
    """Of the days on which there was anything."""
    query = sa.select(served.c.day, *_MEASURES.values()).where(*_conditions(meant)).group_by(served.c.day)
    return {date.fromisoformat(row[0]): _tally(row) for row in connection.execute(query)}


def forget(connection: Connection, before: date, limit: int) -> int:
    """Delete some of what is older; how many lines."""
    key = list(served.primary_key.columns)
    old = sa.select(*key).where(served.c.day < before.isoformat()).limit(limit)
    return connection.execute(served.delete().where(sa.tuple_(*key).in_(old))).rowcount


def _tally(row: Any) -> HitCount:
    return HitCount(int(row.all_requests), int(row.all_bandwidth))


def _row(line: HitAggregate, tally: HitCount) -> dict[str, object]:
    return {
        "tenant_id": line.tenant_id,
        "day": line.day.isoformat(),
        "digest": line.digest,
        "gateway_id": line.gateway_id,
        "cid": line.cid,
        "file_name": line.file_name,
        "status": line.status,
        "user_agent": line.user_agent,
        "referer": line.referer,
        "requests": tally.requests,
        "bandwidth": tally.bandwidth,
    }


def _of(tenant_id: str, day: date) -> Sequence[sa.ColumnElement[bool]]:
    return served.c.tenant_id == tenant_id, served.c.day == day.isoformat()


def _conditions(meant: AnalyticsQuery) -> Iterator[sa.ColumnElement[bool]]:
    yield served.c.tenant_id == meant.tenant_id
    yield served.c.day.between(meant.days.first.isoformat(), meant.days.last.isoformat())
    if meant.gateway_id is not None:
        yield served.c.gateway_id == meant.gateway_id
    if meant.chosen.status is not None:
        yield served.c.status == meant.chosen.status
    for attribute, values in meant.chosen.values.items():
        column = _COLUMNS.get(attribute)
        if column is not None:
            yield column.in_(values)
        elif UNKNOWN not in values:
            yield sa.false()
