"""The table of pins and every line of SQL about it."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from roost.core.db import JsonText, UtcTime, metadata, page_by_creation
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


def add(connection: Connection, pin: Pin) -> None:
    connection.execute(
        pins.insert().values(
            id=pin.id,
            tenant_id=pin.tenant_id,
            cid=pin.ask.cid,
            name=pin.ask.name,
            keyvalues=dict(pin.ask.keyvalues),
            group_id=pin.ask.group_id,
            hosts=list(pin.ask.hosts),
            meta=dict(pin.ask.meta),
            status=pin.status,
            file_id=pin.file_id,
            created_at=pin.created_at,
            updated_at=pin.updated_at,
        )
    )


def get(connection: Connection, pin_id: str, tenant_id: str | None = None, *, lock: bool = False) -> Pin | None:
    query = sa.select(pins).where(_p.id == pin_id)
    if tenant_id is not None:
        query = query.where(_p.tenant_id == tenant_id)
    row = connection.execute(query.with_for_update() if lock else query).first()
    return None if row is None else _pin(row)


def page(
    connection: Connection, tenant_id: str, wanted: PinQuery, after: PageCursor | None, limit: int, offset: int = 0
) -> Sequence[Pin]:
    """Pins by their creation, those beyond `after`."""
    query = sa.select(pins).where(*_conditions(tenant_id, wanted))
    ordered = page_by_creation(query, _p.created_at, _p.id, after, ascending=wanted.ascending)
    return [_pin(row) for row in connection.execute(ordered.limit(limit).offset(offset))]


def count(connection: Connection, tenant_id: str, wanted: PinQuery) -> int:
    query = sa.select(sa.func.count()).where(*_conditions(tenant_id, wanted))
    return connection.execute(query).scalar_one()


def oldest(connection: Connection, tenant_id: str, status: PinState) -> Pin | None:
    query = sa.select(pins).where(_p.tenant_id == tenant_id, _p.status == status)
    row = connection.execute(query.order_by(_p.created_at, _p.id).limit(1)).first()
    return None if row is None else _pin(row)


def latest(connection: Connection, tenant_id: str) -> datetime | None:
    """When the newest of the tenant's pins was made."""
    return connection.execute(sa.select(sa.func.max(_p.created_at)).where(_p.tenant_id == tenant_id)).scalar()


def set_status(connection: Connection, pin_id: str, status: PinState, at: datetime, file_id: str | None = None) -> None:
    connection.execute(pins.update().where(_p.id == pin_id).values(status=status, updated_at=at, file_id=file_id))


def remove(connection: Connection, pin_id: str) -> None:
    connection.execute(pins.delete().where(_p.id == pin_id))


def is_shared(connection: Connection, pin: Pin) -> bool:
    """Whether another pin stands for the same file."""
    query = sa.select(_p.id).where(_p.file_id == pin.file_id, _p.id != pin.id).limit(1)
    return connection.execute(query).first() is not None


def remove_of_file(connection: Connection, file_id: str) -> None:
    connection.execute(pins.delete().where(_p.file_id == file_id))


def forget(connection: Connection, tenant_id: str, before: datetime) -> None:
    """Remove what came to nothing that long ago."""
    query = pins.delete().where(_p.tenant_id == tenant_id, _p.status.in_(FAILED), _p.updated_at < before)
    connection.execute(query)


def _conditions(tenant_id: str, wanted: PinQuery) -> list[Any]:
    found: list[Any] = [_p.tenant_id == tenant_id, _p.status.in_(wanted.statuses)]
    if wanted.cid is not None:
        found.append(_p.cid.in_(wanted.cid))
    if wanted.name is not None:
        found.append(_named(wanted.name, wanted.match))
    if wanted.before is not None:
        found.append(_p.created_at < wanted.before)
    if wanted.after is not None:
        found.append(_p.created_at > wanted.after)
    for key, value in wanted.meta.items():
        pair = f"{json.dumps(key)}:{json.dumps(value)}"  # as it stands in the text, where it follows { or ,
        text = sa.type_coerce(_p.meta, sa.Text)
        found.append(sa.or_(_has(text, "{" + pair), _has(text, "," + pair)))
    return found


def _named(name: str, match: NameMatch) -> sa.ColumnElement[bool]:
    match match:
        case NameMatch.EXACT:
            return _p.name == name
        case NameMatch.PARTIAL:
            return _has(_p.name, name)
        case NameMatch.IEXACT:
            return sa.func.lower(_p.name) == sa.func.lower(name)  # what is a small letter is the database's to say
        case NameMatch.IPARTIAL:
            return _p.name.icontains(name, autoescape=True)


def _has(text: sa.ColumnElement[str], part: str) -> sa.ColumnElement[bool]:
    """Whether a text has that part, minding capitals on every database."""
    return sa.func.replace(text, part, "") != text


def _pin(row: Any) -> Pin:
    ask = PinRequest(row.cid, row.name, row.keyvalues, row.group_id, tuple(row.hosts), row.meta)
    return Pin(row.id, row.tenant_id, ask, PinState(row.status), row.file_id, row.created_at, row.updated_at)
