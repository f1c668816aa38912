"""Ports of agents: kept over restarts, exclusive, bounded by the range, and used again as late as possible."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from sqlalchemy import Connection

from roost.agents.registry.agent_ports import AgentPorts
from roost.agents.registry.errors import NoFreePort, TooFewPorts
from roost.agents.registry.model import AgentProfile
from roost.agents.registry.repository import AgentRepository, HostAgents, abandon_host
from roost.core.db import Database
from roost.core.seal import Sealer
from roost.core.sensitive import Sensitive
from roost.identity import tenants
from roost.identity.caller import Plan
from tests.agents.lifecycle.workflows.lifecycle_env import until

SEALER = Sealer(Sensitive(bytes(32)))


@dataclass
class AgentHost:
    """One server with rows of agents."""

    db: Database
    ports: AgentPorts
    agents: AgentRepository

    async def create(self) -> str:
        def create(connection: Connection) -> str:
            tenant = tenants.ensure_tenant(connection, "acme")
            return self.agents.create(connection, tenant.id, AgentProfile("Ada"), "fake", "1").id

        agent_id = await self.db.write(create)
        await self.until(agent_id, present=True)
        return agent_id

    async def delete(self, agent_id: str) -> None:
        await self.db.write(lambda connection: self.agents.mark_deleted(connection, agent_id))
        await self.until(agent_id, present=False)

    async def until(self, agent_id: str, *, present: bool) -> None:
        async def is_known() -> bool:
            return (self.ports.find_port(agent_id) is not None) is present

        await until(is_known)


@asynccontextmanager
async def running(db: Database, ports: range, host_id: str = "host") -> AsyncIterator[AgentHost]:
    service = AgentPorts(db, host_id, ports)
    await service.start()
    try:
        yield AgentHost(db, service, AgentRepository(db, SEALER, dict.fromkeys(Plan, 20), host_id, service))
    finally:
        await service.stop()


async def test_each_agent_has_a_port_which_outlives_a_restart(database: Database) -> None:
    async with running(database, range(9000, 9003)) as host:
        first, second = await host.create(), await host.create()
        assert [host.ports.find_port(agent) for agent in (first, second)] == [9000, 9001]
        assert [host.ports.find_agent(port) for port in (9000, 9001, 9002)] == [first, second, None]
    async with running(database, range(8999, 9003)) as host:
        assert [host.ports.find_port(agent) for agent in (first, second)] == [9000, 9001]
    async with running(database, range(9001, 9003)) as host:
        assert [host.ports.find_port(agent) for agent in (first, second)] == [9002, 9001]
        assert host.ports.find_agent(9000) is None


async def test_a_freed_port_is_used_again_last(database: Database) -> None:
    async with running(database, range(9000, 9003)) as host:
        first, second = await host.create(), await host.create()
        await host.delete(first)
        await host.delete(second)
        assert host.ports.find_agent(9000) is None
        assert [host.ports.find_port(await host.create()) for _ in range(3)] == [9002, 9000, 9001]
        with pytest.raises(NoFreePort):
            await host.create()
        assert len(await HostAgents(database, "host").list()) == 5


async def test_many_at_once_share_no_port(database: Database) -> None:
    async with running(database, range(9000, 9020)) as host:
        found = [host.ports.find_port(agent) for agent in await asyncio.gather(*(host.create() for _ in range(16)))]
        assert len(set(found)) == 16


async def test_a_range_that_is_too_small_is_an_error(database: Database) -> None:
    async with running(database, range(9000, 9003)) as host:
        for _ in range(3):
            await host.create()
    with pytest.raises(TooFewPorts, match="3 agents need a port each, and 9000-9001 are only 2"):
        await AgentPorts(database, "host", range(9000, 9002)).start()


async def test_hosts_of_one_database_have_their_own_ports_and_know_those_of_others(database: Database) -> None:
    if database.is_sqlite:
        pytest.skip("a SQLite database has one server")
    async with running(database, range(9000, 9002)) as one, running(database, range(9000, 9002), "other") as other:
        here, there = await one.create(), await other.create()
        await one.until(there, present=True)
        assert (one.ports.find_agent(9000), other.ports.find_agent(9000)) == (here, there)


async def test_an_agent_that_another_host_adopts_gets_a_port_there(database: Database) -> None:
    async with running(database, range(9000, 9002)) as host:
        agent = await host.create()
    await database.write(lambda connection: abandon_host(connection, "host"))
    await HostAgents(database, "other").adopt_unassigned(None)
    async with running(database, range(9500, 9501), "other") as host:
        assert host.ports.find_port(agent) == 9500
        assert host.ports.find_agent(9500) == agent
