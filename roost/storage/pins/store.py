"""Table and SQL of pins."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from roost.core.db import Connection, JsonText, UtcTime, metadata, page_by_creation, read_one, record_values
from roost.core.page_cursor import PageCursor
from roost.storage.pins.model import FAILED, NameMatch, Pin, PinQuery, PinRequest, PinState

pins = sa.Table(
    "pins",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("tenant_id", sa.String(36), sa.ForeignKey("tenants.id"), nullable=False),
    sa.Column("cid", sa.String(128), nullable=False),
    sa.Column("name", sa.String(255)),
    sa.Column("keyvalues", JsonText, nullable=False),
    sa.Column("group_id", sa.String(36), sa.ForeignKey("groups.id", ondelete="SET NULL"), index=True),
    sa.Column("hosts", JsonText, nullable=False),
    sa.Column("meta", JsonText, nullable=False),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("file_id", sa.String(36), sa.ForeignKey("files.id"), index=True),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("updated_at", UtcTime, nullable=False),
    sa.Index("ix_pins_tenant_id_created_at_id", "tenant_id", "created_at", "id"),
)
_p = pins.c


def insert_pin(connection: Connection, pin: Pin) -> None:
    connection.execute(pins.insert().values(record_values(pins, pin, **vars(pin.request))))


def get_pin(connection: Connection, pin_id: str, tenant_id: str | None = None, *, lock: bool = False) -> Pin | None:
    query = sa.select(pins).where(_p.id == pin_id)
    if tenant_id is not None:
        query = query.where(_p.tenant_id == tenant_id)
    return read_one(connection, query.with_for_update() if lock else query, _pin)


def list_pins(
    connection: Connection, tenant_id: str, query: PinQuery, after: PageCursor | None, limit: int, offset: int = 0
) -> Sequence[Pin]:
    """Return pins by creation time, starting beyond `after`."""
    select = sa.select(pins).where(*_conditions(tenant_id, query))
    ordered = page_by_creation(select, _p.created_at, _p.id, after, ascending=query.ascending)
    return [_pin(row) for row in connection.execute(ordered.limit(limit).offset(offset))]


def count_pins(connection: Connection, tenant_id: str, query: PinQuery) -> int:
    return connection.execute(sa.select(sa.func.count()).where(*_conditions(tenant_id, query))).scalar_one()


def get_oldest_pin(connection: Connection, tenant_id: str, status: PinState) -> Pin | None:
    query = sa.select(pins).where(_p.tenant_id == tenant_id, _p.status == status)
    return read_one(connection, query.order_by(_p.created_at, _p.id).limit(1), _pin)


def get_latest_creation(connection: Connection, tenant_id: str) -> datetime | None:
    return connection.execute(sa.select(sa.func.max(_p.created_at)).where(_p.tenant_id == tenant_id)).scalar()


def set_status(connection: Connection, pin_id: str, status: PinState, at: datetime, file_id: str | None = None) -> None:
    connection.execute(pins.update().where(_p.id == pin_id).values(status=status, updated_at=at, file_id=file_id))


def delete_pin(connection: Connection, pin_id: str) -> None:
    connection.execute(pins.delete().where(_p.id == pin_id))


def is_file_shared(connection: Connection, pin: Pin) -> bool:
    """Return whether another pin has the same file."""
    query = sa.select(_p.id).where(_p.file_id == pin.file_id, _p.id != pin.id).limit(1)
    return connection.execute(query).first() is not None


def delete_pins_of_file(connection: Connection, file_id: str) -> None:
    connection.execute(pins.delete().where(_p.file_id == file_id))


def delete_old_failures(connection: Connection, tenant_id: str, before: datetime) -> None:
    """Delete failed pins that were last updated before a time."""
    query = pins.delete().where(_p.tenant_id == tenant_id, _p.status.in_(FAILED), _p.updated_at < before)
    connection.execute(query)


def _conditions(tenant_id: str, query: PinQuery) -> list[Any]:
    conditions: list[Any] = [_p.tenant_id == tenant_id, _p.status.in_(query.statuses)]
    if query.cid is not None:
        conditions.append(_p.cid.in_(query.cid))
    if query.name is not None:
        conditions.append(_name_matches(query.name, query.match))
    if query.before is not None:
        conditions.append(_p.created_at < query.before)
    if query.after is not None:
        conditions.append(_p.created_at > query.after)
    for key, value in query.meta.items():
        pair = f"{json.dumps(key)}:{json.dumps(value)}"  # in the JSON text it follows { or ,
        text = sa.type_coerce(_p.meta, sa.Text)
        conditions.append(sa.or_(_contains(text, "{" + pair), _contains(text, "," + pair)))
    return conditions


def _name_matches(name: str, match: NameMatch) -> sa.ColumnElement[bool]:
    return {
        NameMatch.EXACT: _p.name == name,
        NameMatch.PARTIAL: _contains(_p.name, name),
        NameMatch.IEXACT: sa.func.lower(_p.name) == sa.func.lower(name),  # the database decides what lower case is
        NameMatch.IPARTIAL: _p.name.icontains(name, autoescape=True),
    }[match]


def _contains(text: sa.ColumnElement[str], part: str) -> sa.ColumnElement[bool]:
    """Return a case-sensitive substring test, which LIKE is not on every database."""
    return sa.func.replace(text, part, "") != text


def _pin(row: Any) -> Pin:
    request = PinRequest(row.cid, row.name, row.keyvalues, row.group_id, tuple(row.hosts), row.meta)
    return Pin(row.id, row.tenant_id, request, PinState(row.status), row.file_id, row.created_at, row.updated_at)
