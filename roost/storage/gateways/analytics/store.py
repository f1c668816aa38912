"""The table of gateway hits and all SQL about it."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import date
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from roost.core.db import Connection, metadata
from roost.storage.gateways.analytics import model
from roost.storage.gateways.analytics.model import AnalyticsQuery, Hit, HitCount

# No foreign keys: hits outlive their gateway.
hits = sa.Table(
    "storage_gateway_served",
    metadata,
    sa.Column("tenant_id", sa.String(36), primary_key=True),
    sa.Column("day", sa.String(10), primary_key=True, index=True),
    sa.Column("digest", sa.LargeBinary(16), primary_key=True),
    sa.Column("gateway_id", sa.String(36), nullable=False),
    sa.Column("cid", sa.String(255), nullable=False),
    sa.Column("file_name", sa.String(model.MAX_FILE_NAME), nullable=False),
    sa.Column("status", sa.Integer, nullable=False),
    sa.Column("user_agent", sa.String(model.MAX_USER_AGENT), nullable=False),
    sa.Column("referer", sa.String(model.MAX_REFERER), nullable=False),
    sa.Column("requests", sa.BigInteger, nullable=False),
    sa.Column("bandwidth", sa.BigInteger, nullable=False),
)

_KEY = list(hits.primary_key.columns)
_COUNTERS = ("requests", "bandwidth")
_ATTRIBUTES = [column.name for column in hits.c if column.name not in _COUNTERS]
_SUMS = {name: sa.func.sum(hits.c[name]).label(f"sum_{name}") for name in _COUNTERS}
_LOCATION: sa.ColumnElement[str] = sa.literal_column(f"'{model.UNKNOWN}'")
_COLUMNS: Mapping[str, sa.ColumnElement[Any]] = dict(hits.c.items()) | {"country": _LOCATION, "region": _LOCATION}


def add_counts(connection: Connection, counts: Mapping[Hit, HitCount]) -> None:
    """Add counts to the rows' counters, in the order of the key, so that two writers cannot deadlock."""
    insert = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}[connection.dialect.name](hits)
    upsert = insert.on_conflict_do_update(
        index_elements=_KEY, set_={name: hits.c[name] + insert.excluded[name] for name in _COUNTERS}
    )
    rows = [{name: getattr(hit, name) for name in _ATTRIBUTES} | asdict(count) for hit, count in counts.items()]
    connection.execute(upsert, sorted(rows, key=lambda row: (row["tenant_id"], row["day"], row["digest"])))


def count_rows(connection: Connection, tenant_id: str, day: str) -> int:
    query = sa.select(sa.func.count()).where(hits.c.tenant_id == tenant_id, hits.c.day == day)
    return connection.execute(query).scalar_one()


def list_digests(connection: Connection, tenant_id: str, day: str) -> set[bytes]:
    query = sa.select(hits.c.digest).where(hits.c.tenant_id == tenant_id, hits.c.day == day)
    return set(connection.execute(query).scalars())


def sum_hits(
    connection: Connection, tenant_id: str, query: AnalyticsQuery, column: str, limit: int | None = None
) -> Mapping[str, HitCount]:
    """Sum the hits of each value of a column, in the order of the query, at most `limit` values."""
    metric = _SUMS[query.sort_by or "requests"]
    select = (
        sa.select(_COLUMNS[column].label("value"), *_SUMS.values())
        .where(hits.c.tenant_id == tenant_id)
        .where(hits.c.day.between(query.first_day.isoformat(), query.last_day.isoformat()))
        .where(*(_COLUMNS[name].in_(values) for name, values in query.filters.items()))
        .group_by("value")
        .order_by(metric.asc() if query.ascending else metric.desc(), "value")
        .limit(limit)
    )
    # PostgreSQL sums big integers as decimals.
    return {row.value: HitCount(int(row.sum_requests), int(row.sum_bandwidth)) for row in connection.execute(select)}


def delete_days_before(connection: Connection, day: date, limit: int) -> int:
    """Delete up to `limit` rows of the days before `day`; return their number."""
    old = sa.select(*_KEY).where(hits.c.day < day.isoformat()).limit(limit)
    return connection.execute(hits.delete().where(sa.tuple_(*_KEY).in_(old))).rowcount
