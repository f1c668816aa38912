"""Chat channels of an agent."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_table(
        "agent_channels",
        sa.Column("agent_id", sa.String(36), nullable=False),
        sa.Column("channel", sa.String(16), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("bot_mark", sa.String(64)),
        sa.Column("app_mark", sa.String(64)),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("dm_policy", sa.String(16), nullable=False),
        sa.Column("allow_from", sa.Text(), nullable=False),
        sa.Column("bot_name", sa.String(200)),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("agent_id", "channel", name="pk_agent_channels"),
        sa.UniqueConstraint("bot_mark", name="uq_agent_channels_bot_mark"),
        sa.UniqueConstraint("app_mark", name="uq_agent_channels_app_mark"),
        sa.ForeignKeyConstraint(
            ["agent_id"], ["agents.id"], name="fk_agent_channels_agent_id_agents", ondelete="CASCADE"
        ),
    )
