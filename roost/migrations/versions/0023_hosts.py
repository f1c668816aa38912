"""Hosts of agents. Present agents have none until the first server starts that has their files."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    op.create_table(
        "hosts",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("folder", sa.Text(), nullable=False),
        sa.Column("session", sa.String(64), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("seen_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_hosts"),
    )
    op.add_column("agents", sa.Column("host_id", sa.String(36)))
    op.add_column("operations", sa.Column("host", sa.String(36)))
