"""The table of channels and every line of SQL about it."""

import sqlalchemy as sa

from roost.core.db import JsonText, UtcTime, metadata

agent_channels = sa.Table(
    "agent_channels",
    metadata,
    sa.Column("agent_id", sa.String(36), sa.ForeignKey("agents.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("channel", sa.String(16), primary_key=True),
    sa.Column("sealed", sa.LargeBinary, nullable=False),
    sa.Column("enabled", sa.Boolean, nullable=False),
    sa.Column("dm_policy", sa.String(16), nullable=False),
    sa.Column("allow_from", JsonText, nullable=False),
    sa.Column("bot_name", sa.String(200)),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("updated_at", UtcTime, nullable=False),
)
