"""Storage gateways, who may use them, their plugins."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.create_table(
        "storage_gateways",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("tenant_id", sa.String(36), nullable=False),
        sa.Column("domain", sa.String(63), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("deleted_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_storage_gateways"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_storage_gateways_tenant_id_tenants"),
        sa.UniqueConstraint("domain", name="uq_storage_gateways_domain"),
    )
    order = ["tenant_id", "created_at", "id"]
    op.create_index("ix_storage_gateways_tenant_id_created_at_id", "storage_gateways", order)
    op.create_table(
        "storage_gateway_controls",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("gateway_id", sa.String(36), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("value", sa.String(255), nullable=False),
        sa.Column("proof", sa.LargeBinary(32)),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_storage_gateway_controls"),
        _gateway("storage_gateway_controls"),
    )
    op.create_index("ix_storage_gateway_controls_gateway_id", "storage_gateway_controls", ["gateway_id"])
    op.create_table(
        "storage_gateway_domains",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("gateway_id", sa.String(36), nullable=False),
        sa.Column("domain", sa.String(253), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_storage_gateway_domains"),
        _gateway("storage_gateway_domains"),
        sa.UniqueConstraint("gateway_id", "domain", name="uq_storage_gateway_domains_gateway_id_domain"),
    )
    op.create_table(
        "storage_gateway_plugins",
        sa.Column("gateway_id", sa.String(36), nullable=False),
        sa.Column("plugin_id", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("gateway_id", "plugin_id", name="pk_storage_gateway_plugins"),
        _gateway("storage_gateway_plugins"),
    )


def _gateway(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["gateway_id"], ["storage_gateways.id"], name=f"fk_{table}_gateway_id_storage_gateways"
    )
