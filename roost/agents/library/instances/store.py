"""Table and SQL of the templates that agents were made from."""

from collections.abc import Collection, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from roost.agents.library.instances.model import TemplateInstance
from roost.core.db import JsonText, UtcTime, metadata, read_one, read_record, record_values, split_values

template_instances = sa.Table(
    "template_instances",
    metadata,
    sa.Column("agent_id", sa.String(36), sa.ForeignKey("agents.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("template_id", sa.String(36), sa.ForeignKey("templates.id"), nullable=False, index=True),
    sa.Column("slug", sa.String(100), nullable=False),
    sa.Column("name", sa.String(100), nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("commit_sha", sa.String(40), nullable=False),
    sa.Column("manifest", JsonText, nullable=False),
    sa.Column("is_waiting", sa.Boolean, nullable=False),
    sa.Column("attempt", sa.Text),
    sa.Column("created_at", UtcTime, nullable=False),
)


def insert_instance(connection: Connection, instance: TemplateInstance) -> None:
    connection.execute(template_instances.insert().values(record_values(template_instances, instance)))


def get_instance(connection: Connection, agent_id: str) -> TemplateInstance | None:
    return read_one(connection, template_instances.select().where(template_instances.c.agent_id == agent_id), _instance)


def list_waiting(connection: Connection, agent_ids: Collection[str]) -> Sequence[TemplateInstance]:
    """List those of the agents that wait for something."""
    waiting = template_instances.select().where(template_instances.c.is_waiting.is_(True))
    parts = [waiting.where(template_instances.c.agent_id.in_(part)) for part in split_values(agent_ids)]
    return [_instance(row) for query in parts for row in connection.execute(query)]


def set_waiting(connection: Connection, agent_id: str, attempt: str, *, is_waiting: bool) -> bool:
    """Record an attempt to start a waiting agent; return whether the agent was still waiting."""
    is_meant = (template_instances.c.agent_id == agent_id) & template_instances.c.is_waiting.is_(True)
    query = template_instances.update().where(is_meant).values(attempt=attempt, is_waiting=is_waiting)
    return connection.execute(query).rowcount == 1


def _instance(row: Any) -> TemplateInstance:
    return read_record(TemplateInstance, row)
