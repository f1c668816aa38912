"""Registration of servers: one process for each identity, and removal of lost servers with their agents."""

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy.exc import DBAPIError

from roost import work
from roost.agents.lifecycle.hosts import service
from roost.agents.lifecycle.hosts.model import HostIdentity, HostNotFound, HostRunning
from roost.agents.lifecycle.hosts.service import HostService
from roost.agents.registry.errors import AgentOnOtherHost
from roost.agents.registry.model import Agent, AgentProfile, AgentState
from roost.agents.registry.repository import AgentRepository, HostAgents
from roost.core import clock
from roost.core.db import Database
from roost.core.seal import Sealer
from roost.core.sensitive import Sensitive
from roost.identity import tenants
from roost.identity.caller import Plan
from roost.work import OperationState

HERE = HostIdentity("here", "one.example", "/srv/data", "original")
_FAILING_TRIGGER = "CREATE TEMP TRIGGER full BEFORE UPDATE ON hosts BEGIN SELECT RAISE(FAIL, 'full'); END"
COPY = replace(HERE, folder="/srv/copy", session="copy")


def host(database: Database, identity: HostIdentity = HERE, lost: list[str] | None = None) -> HostService:
    return HostService(database, identity, lambda: (lost if lost is not None else []).append(identity.session))


def create_agent(database: Database, host_id: str) -> Agent:
    agents = AgentRepository(database, Sealer(Sensitive(bytes(32))), dict.fromkeys(Plan, 9), host_id)
    tenant_id = database.run(lambda c: tenants.ensure_tenant(c, "acme").id)
    return database.run(lambda c: agents.create(c, tenant_id, AgentProfile("a"), "fake", "1"))


async def test_a_server_is_running_until_it_stops(database: Database) -> None:
    server = host(database)
    await server.start()
    (present,) = database.run(service.list_hosts)
    assert (present.id, present.name, present.is_running(clock.utc_now())) == ("here", "one.example", True)
    assert not present.is_running(clock.utc_now() + timedelta(minutes=1))
    await server.stop()
    (present,) = database.run(service.list_hosts)
    assert not present.is_running(clock.utc_now())


async def test_a_killed_server_starts_again_at_once(database: Database) -> None:
    for _ in range(2):
        server = host(database)
        await server.start()
        await server._heartbeat.stop()
    assert len(database.run(service.list_hosts)) == 1


@pytest.mark.parametrize("dialect", [pytest.param("postgresql", marks=pytest.mark.postgres)])
async def test_a_copy_of_a_folder_does_not_start_beside_the_original(database: Database) -> None:
    original = host(database)
    await original.start()
    with pytest.raises(HostRunning, match=r"/srv/copy is a copy of .* one\.example, /srv/data|/srv/copy is a copy"):
        await host(database, COPY).start()
    await original.stop()
    copy = host(database, COPY)
    await copy.start()
    with pytest.raises(HostRunning):
        await original.start()
    await copy.stop()


@pytest.mark.parametrize("dialect", ["sqlite"])
async def test_a_copy_of_a_folder_with_its_database_is_a_server_of_its_own(database: Database) -> None:
    await (original := host(database)).start()
    await (copy := host(database, COPY)).start()
    await original.stop()
    await copy.stop()


async def test_a_server_whose_identity_was_taken_over_ends(database: Database) -> None:
    lost: list[str] = []
    server = host(database, lost=lost)
    await server.start()
    await server._heartbeat.run_once()
    assert lost == []
    database.run(lambda c: service.store.delete_host(c, "here"))
    for _ in range(2):
        await server._heartbeat.run_once()
    assert lost == ["original"]
    await server.stop()


async def test_only_a_server_that_is_gone_can_be_removed(database: Database) -> None:
    server = host(database)
    await server.start()
    with pytest.raises(HostRunning):
        database.run(lambda c: service.remove_host(c, "here"))
    await server.stop()
    assert database.run(lambda c: service.remove_host(c, "here")) == 0
    with pytest.raises(HostNotFound):
        database.run(lambda c: service.remove_host(c, "here"))


async def test_agents_of_a_removed_server_can_be_adopted_or_deleted_by_another_one(database: Database) -> None:
    await host(database).stop()
    await (gone := host(database)).start()
    await gone.stop()
    agent, other = create_agent(database, "here"), create_agent(database, "other")
    pending = database.run(lambda c: work.add_operation(c, "agent.start", agent.id, host="here"))
    assert database.run(lambda c: service.remove_host(c, "here")) == 1
    assert database.run(lambda c: work.get_operation(c, pending.id)).state is OperationState.FAILED
    agents = AgentRepository(database, Sealer(Sensitive(bytes(32))), {}, "new")
    left = await agents.get(agent.id)
    assert (left.host_id, left.state, left.reason) == (None, AgentState.NOT_RUNNING, "The agent's server was removed")
    with pytest.raises(AgentOnOtherHost, match="removed"):
        await agents.get_here(agent.id)
    here = HostAgents(database, "new")
    await here.adopt_unassigned({"unrelated"})
    assert await here.list() == []
    await here.adopt_unassigned({agent.id, other.id})
    assert [mine.id for mine in await here.list()] == [agent.id]


@pytest.mark.parametrize("dialect", ["sqlite"])
async def test_a_database_that_cannot_be_written_fails_the_check(database: Database) -> None:
    server = host(database)
    await server.start()
    await server.check_database()
    server._written_at = float("-inf")
    database.run(lambda c: c.exec_driver_sql(_FAILING_TRIGGER))
    with pytest.raises(DBAPIError):
        await server.check_database()
    await server._heartbeat.stop()


async def test_all_servers_have_one_certificate_sealed_in_the_database(database: Database) -> None:
    made = iter("one two".split())
    loads = [
        service.load_certificate(database, Sealer(Sensitive(bytes(32))), lambda: Sensitive(next(made)))
        for _ in range(2)
    ]
    assert [(await load).reveal() for load in loads] == ["one", "one"]
    rows = database.run(lambda connection: connection.exec_driver_sql("SELECT sealed FROM server_certificates").all())
    assert len(rows) == 1
    assert b"one" not in bytes(rows[0][0])
