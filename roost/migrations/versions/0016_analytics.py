"""How often and how much storage gateways served, by day."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    op.create_table(
        "storage_gateway_served",
        sa.Column("tenant_id", sa.String(36), nullable=False),
        sa.Column("day", sa.String(10), nullable=False),
        sa.Column("digest", sa.LargeBinary(16), nullable=False),
        sa.Column("gateway_id", sa.String(36), nullable=False),
        sa.Column("cid", sa.String(255), nullable=False),
        sa.Column("file_name", sa.String(255), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("user_agent", sa.String(200), nullable=False),
        sa.Column("referer", sa.String(255), nullable=False),
        sa.Column("requests", sa.BigInteger(), nullable=False),
        sa.Column("bandwidth", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "day", "digest", name="pk_storage_gateway_served"),
    )
    op.create_index("ix_storage_gateway_served_day", "storage_gateway_served", ["day"])
