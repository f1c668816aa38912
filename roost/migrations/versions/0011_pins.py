"""Pins by CID."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.create_table(
        "pins",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("tenant_id", sa.String(36), nullable=False),
        sa.Column("cid", sa.String(128), nullable=False),
        sa.Column("name", sa.String(255)),
        sa.Column("keyvalues", sa.Text(), nullable=False),
        sa.Column("group_id", sa.String(36)),
        sa.Column("hosts", sa.Text(), nullable=False),
        sa.Column("meta", sa.Text(), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("file_id", sa.String(36)),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_pins"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_pins_tenant_id_tenants"),
        sa.ForeignKeyConstraint(["group_id"], ["groups.id"], name="fk_pins_group_id_groups", ondelete="SET NULL"),
        sa.ForeignKeyConstraint(["file_id"], ["files.id"], name="fk_pins_file_id_files"),
    )
    op.create_index("ix_pins_group_id", "pins", ["group_id"])
    op.create_index("ix_pins_file_id", "pins", ["file_id"])
    op.create_index("ix_pins_tenant_id_created_at_id", "pins", ["tenant_id", "created_at", "id"])
