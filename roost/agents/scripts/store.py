"""The table of scripts and every line of SQL about it."""

import sqlalchemy as sa

from roost.core.db import UtcTime, metadata

agent_scripts = sa.Table(
    "agent_scripts",
    metadata,
    sa.Column("agent_id", sa.String(36), sa.ForeignKey("agents.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("script", sa.String(16), primary_key=True),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("reason", sa.Text),
    sa.Column("exit_code", sa.Integer),
    sa.Column("started_at", UtcTime),
    sa.Column("finished_at", UtcTime),
)
