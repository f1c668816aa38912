"""The table of groups and all SQL about it."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from roost.core.db import Connection, UtcTime, metadata, page_by_creation, read_one, read_record, record_values
from roost.core.page_cursor import PageCursor
from roost.storage.content.model import ContentNetwork
from roost.storage.files.groups.model import Group, GroupFilter

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


def insert_group(connection: Connection, group: Group) -> None:
    connection.execute(groups.insert().values(record_values(groups, group)))


def find_group(connection: Connection, tenant_id: str, network: ContentNetwork | None, group_id: str) -> Group | None:
    """Find a group of the tenant, without a `network` on either."""
    query = sa.select(groups).where(groups.c.tenant_id == tenant_id, groups.c.id == group_id)
    return read_one(connection, query if network is None else query.where(groups.c.network == network), _group)


def list_groups(
    connection: Connection,
    tenant_id: str,
    network: ContentNetwork,
    group_filter: GroupFilter,
    after: PageCursor | None,
    limit: int,
    offset: int = 0,
) -> Sequence[Group]:
    """List groups that match the filter, newest first, from `offset` on after the cursor `after`."""
    query = sa.select(groups).where(groups.c.tenant_id == tenant_id, groups.c.network == network)
    if group_filter.name is not None:
        query = query.where(groups.c.name.icontains(group_filter.name, autoescape=True))
    if group_filter.is_public is not None:
        query = query.where(groups.c.is_public == group_filter.is_public)
    ordered = page_by_creation(query, groups.c.created_at, groups.c.id, after)
    return [_group(row) for row in connection.execute(ordered.limit(limit).offset(offset))]


def update_group(connection: Connection, group: Group) -> None:
    connection.execute(groups.update().where(groups.c.id == group.id).values(record_values(groups, group)))


def delete_group(connection: Connection, group_id: str) -> None:
    """Delete a group; its files are in no group then."""
    connection.execute(groups.delete().where(groups.c.id == group_id))


def _group(row: Any) -> Group:
    return read_record(Group, row, network=ContentNetwork(row.network))
