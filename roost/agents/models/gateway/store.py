"""SQL of model usage."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import date

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from roost.agents.models.gateway.model import ModelUsage, UsageCount
from roost.core.db import Connection, metadata

# No foreign keys: usage outlives its agent.
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

_COUNTERS = ("requests", "prompt_tokens", "completion_tokens")


def add_usage(connection: Connection, usages: Iterable[ModelUsage]) -> None:
    """Add usage to the rows' counters, in the order of the key, so that two writers cannot deadlock."""
    insert = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}[connection.dialect.name](model_usage)
    upsert = insert.on_conflict_do_update(
        index_elements=list(model_usage.primary_key.columns),
        set_={name: model_usage.c[name] + insert.excluded[name] for name in _COUNTERS},
    )
    ordered = sorted(usages, key=lambda usage: usage.key)
    connection.execute(upsert, [asdict(usage) for usage in ordered])


def list_usage(connection: Connection, tenant_id: str, agent_id: str | None, since: str) -> list[ModelUsage]:
    """List usage of an agent or of the whole tenant, newest day first."""
    query = model_usage.select().where(model_usage.c.tenant_id == tenant_id, model_usage.c.day >= since)
    if agent_id is not None:
        query = query.where(model_usage.c.agent_id == agent_id)
    order = (model_usage.c.day.desc(), model_usage.c.agent_id, model_usage.c.model)
    return [ModelUsage(**row) for row in connection.execute(query.order_by(*order)).mappings()]


def sum_usage(
    connection: Connection, tenant_id: str, agent_id: str | None, days: tuple[date, date], column: str, limit: int
) -> Mapping[str, UsageCount]:
    """Sum usage of the days from the first to the last by the values of a column, those with most tokens first."""
    sums = [sa.func.sum(model_usage.c[name]).label(f"sum_{name}") for name in _COUNTERS]
    value = model_usage.c[column]
    query = (
        sa.select(value, *sums)
        .where(model_usage.c.tenant_id == tenant_id)
        .where(model_usage.c.day.between(days[0].isoformat(), days[1].isoformat()))
        .group_by(value)
        .order_by((sums[1].element + sums[2].element).desc(), value)
        .limit(limit)
    )
    if agent_id is not None:
        query = query.where(model_usage.c.agent_id == agent_id)
    # PostgreSQL sums big integers as decimals.
    return {row[0]: UsageCount(*map(int, row[1:])) for row in connection.execute(query)}
