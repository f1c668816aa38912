"""Table and SQL of hot swaps."""

from collections.abc import Sequence

import sqlalchemy as sa

from roost.core.db import Connection, UtcTime, metadata, read_record, record_values
from roost.storage.content.model import ContentNetwork
from roost.storage.gateways.swaps.model import HotSwap

swaps = sa.Table(
    "swaps",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("tenant_id", sa.String(36), sa.ForeignKey("tenants.id"), nullable=False),
    sa.Column("network", sa.String(8), nullable=False),
    sa.Column("cid", sa.String(128), nullable=False),
    sa.Column("mapped_cid", sa.String(128)),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Index("ix_swaps_tenant_id_network_cid_created_at", "tenant_id", "network", "cid", "created_at"),
)


def insert_swap(connection: Connection, swap: HotSwap) -> None:
    connection.execute(swaps.insert().values(record_values(swaps, swap)))


def list_swaps(
    connection: Connection, tenant_id: str, network: ContentNetwork, cid: str, limit: int
) -> Sequence[HotSwap]:
    """List swaps, newest first."""
    mine = (swaps.c.tenant_id == tenant_id, swaps.c.network == network, swaps.c.cid == cid)
    query = swaps.select().where(*mine).order_by(swaps.c.created_at.desc(), swaps.c.id).limit(limit)
    return [read_record(HotSwap, row, network=ContentNetwork(row.network)) for row in connection.execute(query)]


def delete_swaps(connection: Connection, ids: Sequence[str]) -> None:
    connection.execute(swaps.delete().where(swaps.c.id.in_(ids)))
