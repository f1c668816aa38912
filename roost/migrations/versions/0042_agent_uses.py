"""Last uses of agents."""  # noqa: INP001 - Alembic loads it by its path

import sqlalchemy as sa
from alembic import op

revision = "0042"
down_revision = "0041"


def upgrade() -> None:
    op.create_table(
        "agent_uses",
        sa.Column("agent_id", sa.String(36), nullable=False),
        sa.Column("last_used_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("agent_id", name="pk_agent_uses"),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name="fk_agent_uses_agent_id_agents", ondelete="CASCADE"),
    )
