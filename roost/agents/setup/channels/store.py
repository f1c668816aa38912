"""SQL of channels."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from roost.agents.setup.channels.model import Channel
from roost.core.db import JsonText, UtcTime, metadata, record_values
from roost.core.db.sealed import sealed_column

ASSOCIATED_DATA = "agent_channels/{agent_id}/{channel}"

agent_channels = sa.Table(
    "agent_channels",
    metadata,
    sa.Column("agent_id", sa.String(36), sa.ForeignKey("agents.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("channel", sa.String(16), primary_key=True),
    sealed_column("sealed", ASSOCIATED_DATA),
    sa.Column("bot_mark", sa.String(64), unique=True),
    sa.Column("app_mark", sa.String(64), unique=True),
    sa.Column("enabled", sa.Boolean, nullable=False),
    sa.Column("dm_policy", sa.String(16), nullable=False),
    sa.Column("allow_from", JsonText, nullable=False),
    sa.Column("bot_name", sa.String(200)),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("updated_at", UtcTime, nullable=False),
)


def list_channel_rows(connection: Connection, agent_id: str) -> Mapping[str, Any]:
    """Return the agent's rows by channel."""
    rows = connection.execute(agent_channels.select().where(agent_channels.c.agent_id == agent_id))
    return {row.channel: row for row in rows}


def upsert_channel(connection: Connection, agent_id: str, channel: Channel, envelope: bytes, now: datetime) -> bool:
    """Insert or replace a channel; return False if another agent uses one of its tokens."""
    bot_mark, app_mark = channel.token_hashes
    marks = [mark for mark in (bot_mark, app_mark) if mark is not None]
    taken = agent_channels.c.bot_mark.in_(marks) | agent_channels.c.app_mark.in_(marks)
    others = sa.select(agent_channels.c.agent_id).where(taken, agent_channels.c.agent_id != agent_id)
    if connection.execute(others).first() is not None:
        return False
    changed = {"sealed": envelope, "bot_mark": bot_mark, "app_mark": app_mark, "updated_at": now}
    row = record_values(agent_channels, channel, allow_from=list(channel.allow_from), **changed)
    updated = connection.execute(agent_channels.update().where(*_is(agent_id, channel.name)).values(row))
    if not updated.rowcount:
        new = {"agent_id": agent_id, "channel": channel.name, "created_at": now}
        connection.execute(agent_channels.insert().values(row | new))
    return True


def delete_channel(connection: Connection, agent_id: str, channel: str) -> bool:
    """Delete a channel; return whether there was one."""
    return connection.execute(agent_channels.delete().where(*_is(agent_id, channel))).rowcount == 1


def delete_channels(connection: Connection, agent_id: str) -> None:
    connection.execute(agent_channels.delete().where(agent_channels.c.agent_id == agent_id))


def _is(agent_id: str, channel: str) -> tuple[sa.ColumnElement[bool], ...]:
    return agent_channels.c.agent_id == agent_id, agent_channels.c.channel == channel
