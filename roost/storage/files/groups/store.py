"""The table of groups and all SQL about it."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from roost.core.db import UtcTime, metadata, page_by_creation, read_one, read_record, record_values
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


def find_group(connection: Connection, tenant_id: str, network: ContentNetwork, group_id: str) -> Group | None:
    return read_one(connection, _groups_of(tenant_id, network).where(groups.c.id == group_id), _group)


def find_group_by_id(connection: Connection, tenant_id: str, group_id: str) -> Group | None:
    """Find a group of the tenant on either network."""
    query = sa.select(groups).where(groups.c.tenant_id == tenant_id, groups.c.id == group_id)
    return read_one(connection, query, _group)


def list_groups(
    connection: Connection,
    tenant_id: str,
    network: ContentNetwork,
    group_filter: GroupFilter,
    after: PageCursor | None,
    limit: int,
) -> Sequence[Group]:
    """List groups that match the filter, newest first, after the cursor `after`."""
    query = _matching(tenant_id, network, group_filter)
    ordered = page_by_creation(query, groups.c.created_at, groups.c.id, after)
    return [_group(row) for row in connection.execute(ordered.limit(limit))]


def list_groups_slice(
    connection: Connection, tenant_id: str, network: ContentNetwork, group_filter: GroupFilter, limit: int, offset: int
) -> Sequence[Group]:
    """List groups that match the filter, newest first, from `offset` on."""
    ordered = page_by_creation(_matching(tenant_id, network, group_filter), groups.c.created_at, groups.c.id)
    return [_group(row) for row in connection.execute(ordered.limit(limit).offset(offset))]


def update_group(connection: Connection, group_id: str, name: str, at: datetime, *, is_public: bool) -> None:
    values = {"name": name, "is_public": is_public, "updated_at": at}
    connection.execute(groups.update().where(groups.c.id == group_id).values(values))


def delete_group(connection: Connection, group_id: str) -> None:
    """Delete a group; its files are in no group then."""
    connection.execute(groups.delete().where(groups.c.id == group_id))


def _groups_of(tenant_id: str, network: ContentNetwork) -> sa.Select[Any]:
    return sa.select(groups).where(groups.c.tenant_id == tenant_id, groups.c.network == network)


def _matching(tenant_id: str, network: ContentNetwork, group_filter: GroupFilter) -> sa.Select[Any]:
    query = _groups_of(tenant_id, network)
    if group_filter.name is not None:
        query = query.where(groups.c.name.icontains(group_filter.name, autoescape=True))
    if group_filter.is_public is not None:
        query = query.where(groups.c.is_public == group_filter.is_public)
    return query


def _group(row: Any) -> Group:
    return read_record(Group, row, network=ContentNetwork(row.network))
