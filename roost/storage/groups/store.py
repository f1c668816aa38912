"""The table of groups and every line of SQL about it."""

import sqlalchemy as sa
from sqlalchemy import Connection

from roost.core.db import UtcTime, metadata
from roost.storage.content.model import Network
from roost.storage.groups.model import Group

groups = sa.Table(
    "groups",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("tenant_id", sa.String(36), sa.ForeignKey("tenants.id"), nullable=False),
    sa.Column("network", sa.String(8), nullable=False),
    sa.Column("name", sa.String(100), nullable=False),
    sa.Column("is_public", sa.Boolean, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("updated_at", UtcTime, nullable=False),
    sa.Index("ix_groups_tenant_id_network_created_at_id", "tenant_id", "network", "created_at", "id"),
)


def get(connection: Connection, tenant_id: str, network: Network, group_id: str) -> Group | None:
    mine = (groups.c.tenant_id == tenant_id, groups.c.network == network, groups.c.id == group_id)
    row = connection.execute(groups.select().where(*mine)).first()
    if row is None:
        return None
    return Group(row.id, row.tenant_id, Network(row.network), row.name, row.is_public, row.created_at, row.updated_at)
