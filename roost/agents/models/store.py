"""The table of counted tokens and every line of SQL about it."""

from collections.abc import Iterable
from dataclasses import asdict

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from roost.agents.models.model import ModelUsage
from roost.core.db import Connection, metadata

# No foreign keys: what was used stays counted after its agent is gone.
model_usage = sa.Table(
    "model_usage",
    metadata,
    sa.Column("tenant_id", sa.String(36), primary_key=True),
    sa.Column("agent_id", sa.String(36), primary_key=True),
    sa.Column("day", sa.String(10), primary_key=True),
    sa.Column("model", sa.Text, primary_key=True),
    sa.Column("requests", sa.BigInteger, nullable=False),
    sa.Column("prompt_tokens", sa.BigInteger, nullable=False),
    sa.Column("completion_tokens", sa.BigInteger, nullable=False),
)

_COUNTED = ("requests", "prompt_tokens", "completion_tokens")


def add(connection: Connection, usages: Iterable[ModelUsage]) -> None:
    """Add each to what its row has counted; in the order of the key, so that two writers cannot lock each other out."""
    insert = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}[connection.dialect.name](model_usage)
    upsert = insert.on_conflict_do_update(
        index_elements=list(model_usage.primary_key.columns),
        set_={name: model_usage.c[name] + insert.excluded[name] for name in _COUNTED},
    )
    ordered = sorted(usages, key=lambda usage: usage.key)
    connection.execute(upsert, [asdict(usage) for usage in ordered])


def usage(connection: Connection, tenant_id: str, agent_id: str | None, since: str) -> list[ModelUsage]:
    """Newest day first; of the whole tenant without an agent."""
    query = model_usage.select().where(model_usage.c.tenant_id == tenant_id, model_usage.c.day >= since)
    if agent_id is not None:
        query = query.where(model_usage.c.agent_id == agent_id)
    order = (model_usage.c.day.desc(), model_usage.c.agent_id, model_usage.c.model)
    return [ModelUsage(**row) for row in connection.execute(query.order_by(*order)).mappings()]
