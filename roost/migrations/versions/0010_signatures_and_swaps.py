"""Wallet signatures and hot swaps."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.create_table(
        "signatures",
        sa.Column("file_id", sa.String(36), nullable=False),
        sa.Column("cid", sa.String(128), nullable=False),
        sa.Column("signature", sa.String(132), nullable=False),
        sa.Column("address", sa.String(42), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("file_id", name="pk_signatures"),
        sa.ForeignKeyConstraint(["file_id"], ["files.id"], name="fk_signatures_file_id_files", ondelete="CASCADE"),
    )
    op.create_table(
        "swaps",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("tenant_id", sa.String(36), nullable=False),
        sa.Column("network", sa.String(8), nullable=False),
        sa.Column("cid", sa.String(128), nullable=False),
        sa.Column("mapped_cid", sa.String(128)),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_swaps"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_swaps_tenant_id_tenants"),
    )
    order = ["tenant_id", "network", "cid", "created_at"]
    op.create_index("ix_swaps_tenant_id_network_cid_created_at", "swaps", order)
