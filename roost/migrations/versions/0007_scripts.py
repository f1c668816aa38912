"""What became of an agent's scripts."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "agent_scripts",
        sa.Column("agent_id", sa.String(36), nullable=False),
        sa.Column("script", sa.String(16), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("reason", sa.Text()),
        sa.Column("exit_code", sa.Integer()),
        sa.Column("digest", sa.String(64)),
        sa.Column("started_at", sa.BigInteger()),
        sa.Column("finished_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("agent_id", "script", name="pk_agent_scripts"),
        sa.ForeignKeyConstraint(
            ["agent_id"], ["agents.id"], name="fk_agent_scripts_agent_id_agents", ondelete="CASCADE"
        ),
    )
