"""SQL of browser sessions and of the links that open them."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from roost.core.db import UtcTime, metadata, read_one, read_record, record_values
from roost.identity.caller import Role
from roost.identity.sessions.model import IDLE_LIFETIME, BrowserSession, SessionLink

browser_sessions = sa.Table(
    "browser_sessions",
    metadata,
    sa.Column("digest", sa.LargeBinary(32), primary_key=True),
    sa.Column("tenant_id", sa.String(36), sa.ForeignKey("tenants.id"), nullable=False, index=True),
    sa.Column("key_id", sa.String(36), sa.ForeignKey("api_keys.id", ondelete="CASCADE"), nullable=False),
    sa.Column("role", sa.String(10), nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("seen_at", UtcTime, nullable=False),
    sa.Column("expires_at", UtcTime, nullable=False),
)
session_links = sa.Table(
    "session_links",
    metadata,
    sa.Column("digest", sa.LargeBinary(32), primary_key=True),
    sa.Column("tenant_id", sa.String(36), sa.ForeignKey("tenants.id"), nullable=False, index=True),
    sa.Column("key_id", sa.String(36), sa.ForeignKey("api_keys.id", ondelete="CASCADE"), nullable=False),
    sa.Column("role", sa.String(10), nullable=False),
    sa.Column("expires_at", UtcTime, nullable=False),
)

_SESSION = browser_sessions.select().where(browser_sessions.c.digest == sa.bindparam("sought"))
"""A frequent query, built once because that takes longer than to run it."""


def add_session(connection: Connection, session: BrowserSession) -> None:
    row = record_values(browser_sessions, session, role=session.role.value)
    connection.execute(browser_sessions.insert().values(row))


def find_session(connection: Connection, digest: bytes) -> BrowserSession | None:
    return read_one(connection, _SESSION, _session, {"sought": digest})


def touch_session(connection: Connection, digest: bytes, at: datetime) -> None:
    connection.execute(browser_sessions.update().where(browser_sessions.c.digest == digest).values(seen_at=at))


def remove_session(connection: Connection, digest: bytes) -> None:
    connection.execute(browser_sessions.delete().where(browser_sessions.c.digest == digest))


def remove_all_of_key(connection: Connection, key_id: str, now: datetime) -> int:
    """Remove the links and the sessions of a key. Return the number of sessions that had not expired."""
    connection.execute(session_links.delete().where(session_links.c.key_id == key_id))
    connection.execute(browser_sessions.delete().where(_has_expired(now)))  # first, so that the count is without them
    return connection.execute(browser_sessions.delete().where(browser_sessions.c.key_id == key_id)).rowcount


def remove_old_sessions(connection: Connection, tenant_id: str, keep: int, now: datetime) -> None:
    """Remove the ended sessions of all tenants, and those of this tenant except the `keep` used last."""
    table = browser_sessions
    connection.execute(table.delete().where(_has_expired(now)))
    own = sa.select(table.c.digest).where(table.c.tenant_id == tenant_id)
    surplus = own.order_by(table.c.seen_at.desc(), table.c.digest).offset(keep)
    connection.execute(table.delete().where(table.c.digest.in_(surplus)))


def add_link(connection: Connection, link: SessionLink) -> None:
    connection.execute(session_links.insert().values(record_values(session_links, link, role=link.role.value)))


def has_link(connection: Connection, digest: bytes) -> bool:
    query = sa.select(session_links.c.tenant_id).where(session_links.c.digest == digest)
    return connection.execute(query).first() is not None


def take_link(connection: Connection, digest: bytes, now: datetime) -> SessionLink | None:
    """Remove a valid link and return it, None if there is none. One of several concurrent transactions gets it."""
    is_valid = (session_links.c.digest == digest, session_links.c.expires_at > now)
    row = connection.execute(session_links.delete().where(*is_valid).returning(*session_links.c)).first()
    return None if row is None else read_record(SessionLink, row, digest=bytes(row.digest), role=Role(row.role))


def remove_old_links(connection: Connection, tenant_id: str, keep: int, now: datetime) -> None:
    """Remove the expired links of all tenants, and those of this tenant except the newest `keep`."""
    connection.execute(session_links.delete().where(session_links.c.expires_at <= now))
    own = sa.select(session_links.c.digest).where(session_links.c.tenant_id == tenant_id)
    surplus = own.order_by(session_links.c.expires_at.desc(), session_links.c.digest).offset(keep)
    connection.execute(session_links.delete().where(session_links.c.digest.in_(surplus)))


def _has_expired(now: datetime) -> sa.ColumnElement[bool]:
    return sa.or_(browser_sessions.c.expires_at <= now, browser_sessions.c.seen_at <= now - IDLE_LIFETIME)


def _session(row: Any) -> BrowserSession:
    return read_record(BrowserSession, row, digest=bytes(row.digest), role=Role(row.role))
