"""SQL of hosts."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from roost.agents.lifecycle.hosts.model import Host
from roost.core.db import UtcTime, insert_or_ignore, metadata, read_one, read_record, record_values
from roost.core.db.sealed import sealed_column

CERTIFICATE_DATA = "server_certificates/{id}"

hosts = sa.Table(
    "hosts",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("folder", sa.Text, nullable=False),
    sa.Column("session", sa.String(64), nullable=False),
    sa.Column("started_at", UtcTime, nullable=False),
    sa.Column("seen_at", UtcTime),
    sa.Column("address", sa.String(300)),
    sa.Column("shared_runtime", sa.String(32)),
    sa.Column("is_leaving", sa.Boolean, nullable=False, server_default=sa.false()),
)

server_certificates = sa.Table(
    "server_certificates",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sealed_column("sealed", CERTIFICATE_DATA),
)


def lock_host(connection: Connection, host_id: str) -> Host | None:
    """Return a host and lock its row until the transaction ends."""
    return read_one(connection, hosts.select().where(hosts.c.id == host_id).with_for_update(), _host)


def find_host(connection: Connection, host_id: str) -> Host | None:
    return read_one(connection, hosts.select().where(hosts.c.id == host_id), _host)


def list_hosts(connection: Connection) -> list[Host]:
    """List all hosts, oldest first."""
    return [_host(row) for row in connection.execute(hosts.select().order_by(hosts.c.started_at, hosts.c.id))]


def replace_host(connection: Connection, host: Host) -> None:
    connection.execute(hosts.delete().where(hosts.c.id == host.id))
    connection.execute(hosts.insert().values(record_values(hosts, host)))


def set_seen(connection: Connection, host_id: str, session: str, seen_at: datetime | None) -> bool:
    """Record a heartbeat or a stop; return whether the row is still that session's."""
    query = hosts.update().where(hosts.c.id == host_id, hosts.c.session == session)
    return connection.execute(query.values(seen_at=seen_at)).rowcount == 1


def mark_leaving(connection: Connection, host_id: str, session: str) -> None:
    """Record that a server stops and waits for others to take its agents."""
    query = hosts.update().where(hosts.c.id == host_id, hosts.c.session == session)
    connection.execute(query.values(is_leaving=True))


def delete_host(connection: Connection, host_id: str) -> None:
    connection.execute(hosts.delete().where(hosts.c.id == host_id))


def ensure_certificate(connection: Connection, certificate_id: str, sealed: bytes) -> bytes:
    """Store a sealed certificate unless there is one; return that which is stored."""
    values = {"id": certificate_id, "sealed": sealed}
    insert_or_ignore(connection, server_certificates.insert().values(values))
    query = sa.select(server_certificates.c.sealed).where(server_certificates.c.id == certificate_id)
    return connection.execute(query).scalar_one()


def _host(row: Any) -> Host:
    return read_record(Host, row)
