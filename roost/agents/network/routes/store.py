"""SQL of path routes: one row for each agent that has some, so that they are replaced at once."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

import sqlalchemy as sa
from sqlalchemy import Connection

from roost.agents.network.routes.model import PathRoute
from roost.core.db import JsonText, metadata

agent_routes = sa.Table(
    "agent_routes",
    metadata,
    sa.Column("agent_id", sa.String(36), sa.ForeignKey("agents.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("routes", JsonText, nullable=False),
)


def list_routes(connection: Connection, agent_id: str | None) -> Mapping[str, Sequence[PathRoute]]:
    """List the routes of an agent, or of all agents, by agent."""
    query = agent_routes.select()
    if agent_id is not None:
        query = query.where(agent_routes.c.agent_id == agent_id)
    rows = connection.execute(query)
    return {row.agent_id: tuple(PathRoute(**route) for route in row.routes) for row in rows}


def replace_routes(connection: Connection, agent_id: str, routes: Sequence[PathRoute]) -> None:
    connection.execute(agent_routes.delete().where(agent_routes.c.agent_id == agent_id))
    if routes:
        values = {"agent_id": agent_id, "routes": [asdict(route) for route in routes]}
        connection.execute(agent_routes.insert().values(values))
