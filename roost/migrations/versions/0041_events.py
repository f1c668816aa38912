"""Events: changes of tenants, and the last number of each tenant's."""  # noqa: INP001 - Alembic loads it by its path

import sqlalchemy as sa
from alembic import op

revision = "0041"
down_revision = "0040"


def upgrade() -> None:
    op.create_table(
        "event_streams",
        sa.Column("tenant_id", sa.String(36), nullable=False),
        sa.Column("first_number", sa.BigInteger(), nullable=False),
        sa.Column("last_number", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", name="pk_event_streams"),
    )
    op.create_table(
        "events",
        sa.Column("tenant_id", sa.String(36), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("type", sa.String(32), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("subject_kind", sa.String(16), nullable=False),
        sa.Column("subject_id", sa.String(100), nullable=False),
        sa.Column("agent_id", sa.String(36)),
        sa.Column("data", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "number", name="pk_events"),
    )
    op.create_index("ix_events_at", "events", ["at"])
