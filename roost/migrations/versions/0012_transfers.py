"""Uploads in parts."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.create_table(
        "transfers",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("file_id", sa.String(36), nullable=False),
        sa.Column("tenant_id", sa.String(36), nullable=False),
        sa.Column("length", sa.BigInteger()),
        sa.Column("limit", sa.BigInteger(), nullable=False),
        sa.Column("fields", sa.Text(), nullable=False),
        sa.Column("mime_types", sa.Text(), nullable=False),
        sa.Column("profile", sa.String(16), nullable=False),
        sa.Column("offset", sa.BigInteger(), nullable=False),
        sa.Column("hashed", sa.BigInteger(), nullable=False),
        sa.Column("cid", sa.String(128)),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_transfers"),
        sa.UniqueConstraint("digest", name="uq_transfers_digest"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_transfers_tenant_id_tenants"),
    )
    op.create_index("ix_transfers_tenant_id", "transfers", ["tenant_id"])
    op.create_index("ix_transfers_expires_at", "transfers", ["expires_at"])
    op.create_table(
        "transfer_leaves",
        sa.Column("transfer_id", sa.String(32), nullable=False),
        sa.Column("offset", sa.BigInteger(), nullable=False),
        sa.Column("digests", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("transfer_id", "offset", name="pk_transfer_leaves"),
        sa.ForeignKeyConstraint(
            ["transfer_id"], ["transfers.id"], name="fk_transfer_leaves_transfer_id_transfers", ondelete="CASCADE"
        ),
    )
