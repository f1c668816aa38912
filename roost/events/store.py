"""Tables and SQL of events.

A transaction takes the numbers of its events from the row of its tenant, which stays locked until the commit. So the
numbers have no gaps and follow the order of the commits, and a reader that saw one has missed none before it.

The tables have no foreign keys: their check would lock the tenant's row after others, and two transactions could wait
for each other.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from roost.core.db import ActorText, JsonText, UtcTime, metadata, read_one, read_record
from roost.events.model import Event, EventBounds, EventType

event_streams = sa.Table(
    "event_streams",
    metadata,
    sa.Column("tenant_id", sa.String(36), primary_key=True),
    sa.Column("first_number", sa.BigInteger, nullable=False),
    sa.Column("last_number", sa.BigInteger, nullable=False),
)

events = sa.Table(
    "events",
    metadata,
    sa.Column("tenant_id", sa.String(36), primary_key=True),
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("type", sa.String(32), nullable=False),
    sa.Column("at", UtcTime, nullable=False, index=True),
    sa.Column("subject_kind", sa.String(16), nullable=False),
    sa.Column("subject_id", sa.String(100), nullable=False),
    sa.Column("agent_id", sa.String(36)),
    sa.Column("data", JsonText, nullable=False),
    sa.Column("actor", ActorText),
)
_s, _e = event_streams.c, events.c

_TAKE_NUMBERS = sa.text(
    "INSERT INTO event_streams (tenant_id, first_number, last_number) VALUES (:tenant, 1, :count) "
    "ON CONFLICT (tenant_id) DO UPDATE SET last_number = event_streams.last_number + excluded.last_number "
    "RETURNING last_number"
)
_INSERT = events.insert()
_AFTER = (
    events.select()
    .where(_e.tenant_id == sa.bindparam("tenant"), _e.number > sa.bindparam("after"))
    .order_by(_e.number)
    .limit(sa.bindparam("most"))
)


def take_numbers(connection: Connection, tenant_id: str, count: int) -> int:
    """Return the first of `count` new numbers; other transactions of the tenant wait until this one ends."""
    return connection.execute(_TAKE_NUMBERS, {"tenant": tenant_id, "count": count}).scalar_one() - count + 1


def insert_events(connection: Connection, rows: Sequence[Event]) -> None:
    connection.execute(_INSERT, [vars(row) for row in rows])


def get_bounds(connection: Connection, tenant_id: str) -> EventBounds:
    return read_one(connection, event_streams.select().where(_s.tenant_id == tenant_id), _bounds) or EventBounds()


def list_last_numbers(connection: Connection, tenant_ids: Collection[str]) -> Mapping[str, int]:
    """Return the number of the last event of each tenant that has one."""
    rows = connection.execute(sa.select(_s.tenant_id, _s.last_number).where(_s.tenant_id.in_(tenant_ids)))
    return {row.tenant_id: row.last_number for row in rows}


def list_events(connection: Connection, tenant_id: str, after: int, limit: int) -> Sequence[Event]:
    """List a tenant's events after a number, in order."""
    rows = connection.execute(_AFTER, {"tenant": tenant_id, "after": after, "most": limit})
    return [read_record(Event, row, type=EventType(row.type)) for row in rows]


def list_outdated(connection: Connection, before: datetime, most: int, limit: int) -> Mapping[str, int]:
    """Return tenants with events older than a time, or with more than `most`; and the last number to delete of each."""
    old = sa.select(_e.tenant_id, sa.func.max(_e.number)).where(_e.at < before).group_by(_e.tenant_id).limit(limit)
    surplus = sa.select(_s.tenant_id, _s.last_number - most).where(_s.last_number - _s.first_number >= most)
    found: dict[str, int] = {}
    for tenant_id, number in (*connection.execute(old), *connection.execute(surplus.limit(limit))):
        found[tenant_id] = max(number, found.get(tenant_id, 0))
    return found


def delete_events(connection: Connection, tenant_id: str, until: int, limit: int) -> int:
    """Delete at most `limit` of a tenant's first events, up to a number; return how many."""
    first = get_bounds(connection, tenant_id).first
    until = min(until, first + limit - 1)
    if until < first:
        return 0
    connection.execute(events.delete().where(_e.tenant_id == tenant_id, _e.number <= until))
    is_earlier = sa.and_(_s.tenant_id == tenant_id, _s.first_number <= until)  # another server may be further
    connection.execute(event_streams.update().where(is_earlier).values(first_number=until + 1))
    return until - first + 1


def _bounds(row: Any) -> EventBounds:
    return EventBounds(row.first_number, row.last_number)
