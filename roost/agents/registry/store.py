"""SQL of agents, of their last uses, and of the ports of their addresses."""

from collections import namedtuple
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from functools import lru_cache, partial
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from roost.agents.registry.model import Agent, AgentPort, AgentProfile, AgentState
from roost.core.db import UtcTime, insert_or_ignore, metadata, read_one, read_record, record_values, split_values
from roost.core.db.sealed import sealed_column

ASSOCIATED_DATA = "agents/{id}/internal"

agents = sa.Table(
    "agents",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("tenant_id", sa.String(36), sa.ForeignKey("tenants.id"), nullable=False, index=True),
    sa.Column("name", sa.String(100), nullable=False),
    sa.Column("description", sa.Text),
    sa.Column("vibe", sa.String(200)),
    sa.Column("emoji", sa.String(32)),
    sa.Column("engine", sa.String(32), nullable=False),
    sa.Column("engine_version", sa.String(64), nullable=False),
    sealed_column("internal_sealed", ASSOCIATED_DATA),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("reason", sa.Text),
    sa.Column("deleted", sa.Boolean, nullable=False),
    sa.Column("host_id", sa.String(36)),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("updated_at", UtcTime, nullable=False),
    sa.Column("model", sa.String(200)),
    sa.Column("runtime", sa.String(32)),
)

agent_copies = sa.Table(
    "agent_copies",
    metadata,
    sa.Column("host_id", sa.String(36), primary_key=True),
    sa.Column("agent_id", sa.String(36), primary_key=True),
)
"""Agents of whose files a host gets a copy, until the agent is there or the copy is deleted."""

agent_ports = sa.Table(
    "agent_ports",
    metadata,
    sa.Column("host_id", sa.String(36), primary_key=True),
    sa.Column("port", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("agent_id", sa.String(36), sa.ForeignKey("agents.id", ondelete="SET NULL"), unique=True),
    sa.Column("freed_at", UtcTime),
)
"""Ports of hosts; `freed_at` is when the last agent left a port, NULL for one that no agent has had."""

agent_uses = sa.Table(
    "agent_uses",
    metadata,
    sa.Column("agent_id", sa.String(36), sa.ForeignKey("agents.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("last_used_at", UtcTime, nullable=False),
)

_AGENTS = sa.select(  # with times as stored, because most agents of a long list are known and need no conversion
    *(sa.type_coerce(column, sa.BigInteger) if isinstance(column.type, UtcTime) else column for column in agents.c)
)
_read_time = partial(UtcTime().process_result_value, dialect=sqlite.dialect())
_AGENT_BY_ID = _AGENTS.where(agents.c.id == sa.bindparam("agent"))
"""Runs for most requests, and is built once because that takes longer than to run it."""

_AgentRow = namedtuple("_AgentRow", agents.columns.keys())  # noqa: PYI024  # pyright: ignore[reportUntypedNamedTuple] - the names are those of the table


def insert_agent(connection: Connection, agent: Agent, internal_sealed: bytes) -> None:
    values = record_values(agents, agent, **vars(agent.profile), internal_sealed=internal_sealed)
    connection.execute(agents.insert().values(values))


def get_agent(connection: Connection, agent_id: str) -> Agent | None:
    """Return an agent, even if it is marked deleted."""
    return read_one(connection, _AGENT_BY_ID, _agent, {"agent": agent_id})


def lock_agent(connection: Connection, agent_id: str) -> Agent | None:
    """Return an agent and lock its row until the transaction ends."""
    return read_one(connection, _AGENTS.where(agents.c.id == agent_id).with_for_update(), _agent)


def list_tenant_agents(connection: Connection, tenant_id: str) -> list[Agent]:
    """List the tenant's agents, newest first, without those marked deleted."""
    query = _AGENTS.where(agents.c.tenant_id == tenant_id, agents.c.deleted.is_(False))
    return [_agent(row) for row in connection.execute(query.order_by(agents.c.created_at.desc(), agents.c.id)).all()]


def count_agents(connection: Connection, tenant_id: str) -> int:
    query = sa.select(sa.func.count()).where(agents.c.tenant_id == tenant_id, agents.c.deleted.is_(False))
    return connection.execute(query).scalar_one()


def list_host_agents(connection: Connection, host_id: str | None) -> list[Agent]:
    """List the agents of a host, or those of none, of all tenants, including those marked deleted."""
    query = _AGENTS.where(agents.c.host_id.is_not_distinct_from(host_id)).order_by(agents.c.created_at)
    return [_agent(row) for row in connection.execute(query)]


def list_foreign_agents(connection: Connection, host_id: str) -> Sequence[str]:
    """List the ids of the agents of other hosts."""
    return connection.execute(sa.select(agents.c.id).where(agents.c.host_id != host_id)).scalars().all()


def lock_host_agents(connection: Connection, host_id: str | None, agent_ids: Collection[str]) -> set[str]:
    """Return those of the agents that a host has, or none, and lock their rows until the transaction ends."""
    query = sa.select(agents.c.id).where(agents.c.host_id.is_not_distinct_from(host_id)).order_by(agents.c.id)
    found = set[str]()
    for part in split_values(agent_ids):
        found.update(connection.execute(query.where(agents.c.id.in_(part)).with_for_update()).scalars())
    return found


def set_host(connection: Connection, agent_id: str, host_id: str | None) -> None:
    connection.execute(agents.update().where(agents.c.id == agent_id).values(host_id=host_id))


def set_runtime(connection: Connection, agent_id: str, runtime: str | None) -> None:
    connection.execute(agents.update().where(agents.c.id == agent_id).values(runtime=runtime))


def add_copy(connection: Connection, host_id: str, agent_id: str) -> None:
    values = {"host_id": host_id, "agent_id": agent_id}
    insert_or_ignore(connection, agent_copies.insert().values(values))


def delete_copy(connection: Connection, host_id: str, agent_id: str) -> None:
    connection.execute(
        agent_copies.delete().where(agent_copies.c.host_id == host_id, agent_copies.c.agent_id == agent_id)
    )


def list_copies(connection: Connection, host_id: str) -> Sequence[str]:
    """List the agents of whose files a host has a copy."""
    query = sa.select(agent_copies.c.agent_id).where(agent_copies.c.host_id == host_id)
    return connection.execute(query).scalars().all()


def get_sealed_token(connection: Connection, agent_id: str) -> bytes | None:
    return connection.execute(sa.select(agents.c.internal_sealed).where(agents.c.id == agent_id)).scalar()


def set_state(connection: Connection, agent_id: str, state: AgentState, reason: str | None, at: datetime) -> None:
    query = agents.update().where(agents.c.id == agent_id)
    connection.execute(query.values(state=state.value, reason=reason, updated_at=at))


def set_states(
    connection: Connection, agent_ids: Collection[str], sources: Collection[AgentState], to: AgentState, at: datetime
) -> Sequence[str]:
    """Set the state of those agents that are in one of the states `sources`; return their ids."""
    changed = list[str]()
    for part in split_values(agent_ids):
        is_meant = agents.c.id.in_(part) & agents.c.state.in_(sources) & agents.c.deleted.is_(False)
        query = agents.update().where(is_meant).values(state=to.value, reason=None, updated_at=at)
        changed += connection.execute(query.returning(agents.c.id)).scalars()
    return changed


def set_version(connection: Connection, agent_id: str, version: str, at: datetime) -> None:
    connection.execute(agents.update().where(agents.c.id == agent_id).values(engine_version=version, updated_at=at))


def set_profile(connection: Connection, agent_id: str, profile: AgentProfile, at: datetime) -> None:
    query = agents.update().where(agents.c.id == agent_id)
    connection.execute(query.values(**asdict(profile), updated_at=at))


def mark_deleted(connection: Connection, agent_id: str, at: datetime) -> bool:
    query = agents.update().where(agents.c.id == agent_id, agents.c.deleted.is_(False))
    return connection.execute(query.values(deleted=True, updated_at=at)).rowcount == 1


def delete_agent(connection: Connection, agent_id: str) -> None:
    connection.execute(agents.delete().where(agents.c.id == agent_id))


def list_last_uses(connection: Connection, tenant_id: str) -> Mapping[str, datetime | None]:
    """Return the stored last use of each of the tenant's agents, None for one that has none."""
    query = sa.select(agents.c.id, agent_uses.c.last_used_at).select_from(agents.outerjoin(agent_uses))
    rows = connection.execute(query.where(agents.c.tenant_id == tenant_id, agents.c.deleted.is_(False)))
    return dict(rows.all())


def get_last_use(connection: Connection, agent_id: str) -> datetime | None:
    return connection.execute(sa.select(agent_uses.c.last_used_at).where(agent_uses.c.agent_id == agent_id)).scalar()


def set_last_uses(connection: Connection, uses: Mapping[str, datetime]) -> None:
    """Store the last uses of agents that still exist, unless later ones are stored."""
    insert = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}[connection.dialect.name](agent_uses)
    at = sa.bindparam("at", type_=UtcTime)
    existing = sa.select(agents.c.id, at).where(agents.c.id == sa.bindparam("agent"))
    insert = insert.from_select(["agent_id", "last_used_at"], existing.with_for_update(read=True, key_share=True))
    upsert = insert.on_conflict_do_update(
        index_elements=[agent_uses.c.agent_id],
        set_={"last_used_at": insert.excluded.last_used_at},
        where=agent_uses.c.last_used_at < insert.excluded.last_used_at,
    )
    # In the order of the key, so that two writers cannot deadlock.
    connection.execute(upsert, [{"agent": agent_id, "at": at} for agent_id, at in sorted(uses.items())])


def list_agent_ports(connection: Connection, agent_id: str | None) -> Mapping[str, AgentPort]:
    """List the port of an agent, or of all agents, by agent."""
    has_agent = agent_ports.c.agent_id.is_not(None) if agent_id is None else agent_ports.c.agent_id == agent_id
    rows = connection.execute(agent_ports.select().where(has_agent))
    return {row.agent_id: AgentPort(row.host_id, row.port) for row in rows}


def replace_ports(connection: Connection, host_id: str, ports: Collection[int]) -> None:
    """Make `ports` the ports of a host; those that it had before keep their agents."""
    of_host = agent_ports.c.host_id == host_id
    known = set(connection.execute(sa.select(agent_ports.c.port).where(of_host)).scalars())
    surplus = known.difference(ports)
    if surplus:
        connection.execute(agent_ports.delete().where(of_host, agent_ports.c.port.in_(surplus)))
    new = [{"host_id": host_id, "port": port} for port in ports if port not in known]
    if new:
        connection.execute(agent_ports.insert(), new)


def take_port(connection: Connection, host_id: str, agent_id: str) -> int | None:
    """Give an agent the port of the host that is free for the longest time; return it, None if there is none."""
    free = sa.select(agent_ports.c.port).where(agent_ports.c.host_id == host_id, agent_ports.c.agent_id.is_(None))
    oldest = free.order_by(sa.nulls_first(agent_ports.c.freed_at.asc()), agent_ports.c.port).limit(1)
    port = connection.execute(oldest.with_for_update(skip_locked=True)).scalar()
    if port is not None:
        row = agent_ports.update().where(agent_ports.c.host_id == host_id, agent_ports.c.port == port)
        connection.execute(row.values(agent_id=agent_id))
    return port


def free_port(connection: Connection, agent_id: str, at: datetime) -> None:
    row = agent_ports.update().where(agent_ports.c.agent_id == agent_id)
    connection.execute(row.values(agent_id=None, freed_at=at))


def _agent(row: Any) -> Agent:
    return _build_agent(tuple(row))


@lru_cache(maxsize=16384)
def _build_agent(values: tuple[Any, ...]) -> Agent:
    """Build an agent; a long list takes three times as long without those that were read before."""
    row = _AgentRow._make(values)
    profile = AgentProfile(row.name, row.description, row.vibe, row.emoji, row.model)
    times = {name: _read_time(getattr(row, name)) for name in ("created_at", "updated_at")}
    return read_record(Agent, row, profile=profile, state=AgentState(row.state), **times)
