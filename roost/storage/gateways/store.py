"""Tables and SQL of storage gateways."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from roost.core.db import Connection, UtcTime, insert_or_ignore, metadata, read_one, read_record, record_values
from roost.storage.gateways.model import AccessControl, AccessControlKind, GatewayNotFound, Plugin, StorageGateway

gateways = sa.Table(
    "storage_gateways",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("tenant_id", sa.String(36), sa.ForeignKey("tenants.id"), nullable=False),
    sa.Column("domain", sa.String(63), nullable=False, unique=True),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("deleted_at", UtcTime),
    sa.Index("ix_storage_gateways_tenant_id_created_at_id", "tenant_id", "created_at", "id"),
)

controls = sa.Table(
    "storage_gateway_controls",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("gateway_id", sa.String(36), sa.ForeignKey("storage_gateways.id"), nullable=False, index=True),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("value", sa.String(255), nullable=False),
    sa.Column("proof", sa.LargeBinary(32)),
    sa.Column("created_at", UtcTime, nullable=False),
)

# Rows of an earlier version, which stored custom domains without serving them.
custom_domains = sa.Table(
    "storage_gateway_domains",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("gateway_id", sa.String(36), sa.ForeignKey("storage_gateways.id"), nullable=False),
    sa.Column("domain", sa.String(253), nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.UniqueConstraint("gateway_id", "domain", name="uq_storage_gateway_domains_gateway_id_domain"),
)

plugins = sa.Table(
    "storage_gateway_plugins",
    metadata,
    sa.Column("gateway_id", sa.String(36), sa.ForeignKey("storage_gateways.id"), primary_key=True),
    sa.Column("plugin_id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("created_at", UtcTime, nullable=False),
)


def insert_gateway(connection: Connection, gateway: StorageGateway) -> bool:
    """Insert a gateway unless its name was ever taken; return whether it was inserted."""
    return insert_or_ignore(connection, gateways.insert().values(record_values(gateways, gateway)))


def is_domain_taken(connection: Connection, domain: str) -> bool:
    """Return whether the name was ever taken; it is not reused, because old links to it exist."""
    return connection.execute(sa.select(gateways.c.id).where(gateways.c.domain == domain)).first() is not None


def count_gateways(connection: Connection, tenant_id: str, *, deleted: bool = False) -> int:
    """Count the tenant's gateways. deleted: include deleted ones."""
    query = sa.select(sa.func.count()).select_from(gateways).where(gateways.c.tenant_id == tenant_id)
    if not deleted:
        query = query.where(gateways.c.deleted_at.is_(None))
    return connection.execute(query).scalar_one()


def get_gateway(connection: Connection, tenant_id: str, gateway_id: str) -> StorageGateway:
    return _get(connection, gateways.c.tenant_id == tenant_id, gateways.c.id == gateway_id)


def get_gateway_by_domain(connection: Connection, domain: str) -> StorageGateway:
    return _get(connection, gateways.c.domain == domain)


def list_gateways(connection: Connection, tenant_id: str, offset: int, limit: int) -> Sequence[StorageGateway]:
    """Return the tenant's gateways, oldest first."""
    mine = (gateways.c.tenant_id == tenant_id, gateways.c.deleted_at.is_(None))
    query = gateways.select().where(*mine).order_by(gateways.c.created_at, gateways.c.id).offset(offset).limit(limit)
    return [_gateway(connection, row) for row in connection.execute(query).all()]


def mark_deleted(connection: Connection, gateway_id: str, at: datetime) -> None:
    connection.execute(gateways.update().where(gateways.c.id == gateway_id).values(deleted_at=at))
    for table in (controls, custom_domains, plugins):
        connection.execute(table.delete().where(table.c.gateway_id == gateway_id))


def insert_control(connection: Connection, gateway_id: str, control: AccessControl) -> None:
    connection.execute(controls.insert().values(record_values(controls, control, gateway_id=gateway_id)))


def delete_control(connection: Connection, gateway_id: str, control_id: str) -> None:
    connection.execute(controls.delete().where(controls.c.gateway_id == gateway_id, controls.c.id == control_id))


def insert_plugin(connection: Connection, gateway_id: str, plugin: Plugin, at: datetime) -> bool:
    """Install a plugin; return whether it was not installed before."""
    row = {"gateway_id": gateway_id, "plugin_id": int(plugin), "created_at": at}
    return insert_or_ignore(connection, plugins.insert().values(row))


def delete_plugin(connection: Connection, gateway_id: str, plugin: Plugin) -> bool:
    query = plugins.delete().where(plugins.c.gateway_id == gateway_id, plugins.c.plugin_id == int(plugin))
    return connection.execute(query).rowcount == 1


def _get(connection: Connection, *conditions: Any) -> StorageGateway:
    """Return the gateway that meets the conditions. Raises GatewayNotFound."""
    query = gateways.select().where(*conditions, gateways.c.deleted_at.is_(None))
    gateway = read_one(connection, query, lambda row: _gateway(connection, row))
    if gateway is None:
        raise GatewayNotFound
    return gateway


def _gateway(connection: Connection, row: Any) -> StorageGateway:
    found = _of(connection, controls, row.id)
    return read_record(
        StorageGateway,
        row,
        controls=tuple(read_record(AccessControl, one, kind=AccessControlKind(one.kind)) for one in found),
        plugins=frozenset(Plugin(one.plugin_id) for one in _of(connection, plugins, row.id)),
    )


def _of(connection: Connection, table: sa.Table, gateway_id: str) -> Sequence[Any]:
    query = table.select().where(table.c.gateway_id == gateway_id).order_by(table.c.created_at)
    return connection.execute(query).all()
