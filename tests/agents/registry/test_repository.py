"""Agents on both databases: quotas hold under concurrency, states change by the transitions only (case B5)."""

import asyncio

import pytest

from roost.agents.registry.errors import AgentLimitReached, AgentNotFound, AgentOnOtherHost
from roost.agents.registry.model import REASON_LIMIT, Agent, AgentProfile, AgentState
from roost.agents.registry.repository import AgentRepository, HostAgents, set_agent_host, set_wait_reason
from roost.core.db import Database
from roost.core.seal import Sealer
from roost.core.sensitive import Sensitive
from roost.identity import tenants
from roost.identity.caller import Plan

SEALER = Sealer(Sensitive(bytes(32)))


@pytest.fixture
def repository(database: Database) -> AgentRepository:
    return AgentRepository(database, SEALER, {Plan.FREE: 3, Plan.PAID: 20}, "host")


@pytest.fixture
def tenant_id(database: Database) -> str:
    return database.run(lambda c: tenants.ensure_tenant(c, "acme").id)


def create(database: Database, repository: AgentRepository, tenant_id: str, name: str = "one") -> Agent:
    return database.run(lambda c: repository.create(c, tenant_id, AgentProfile(name), "fake", "1"))


async def test_fifty_at_once_never_exceed_the_quota(
    database: Database, repository: AgentRepository, tenant_id: str
) -> None:
    async def create(number: int) -> bool:
        try:
            await database.write(lambda c: repository.create(c, tenant_id, AgentProfile(f"n{number}"), "fake", "1"))
        except AgentLimitReached:
            return False
        return True

    admitted = await asyncio.gather(*(create(number) for number in range(50)))
    assert sum(admitted) == 3
    assert len(await repository.list(tenant_id)) == 3


async def test_plans_have_their_own_quota(database: Database, repository: AgentRepository, tenant_id: str) -> None:
    assert await repository.get_limit(tenant_id) == (Plan.FREE, 3)
    database.run(lambda c: tenants.ensure_tenant(c, "acme", Plan.PAID))
    assert await repository.get_limit(tenant_id) == (Plan.PAID, 20)


async def test_a_new_agent_is_starting_and_has_an_internal_token(
    database: Database, repository: AgentRepository, tenant_id: str
) -> None:
    agent = create(database, repository, tenant_id)
    assert await repository.get(agent.id) == agent
    assert agent.state is AgentState.STARTING
    token = await repository.get_internal_token(agent.id)
    assert token == await AgentRepository(database, SEALER, {}, "host").get_internal_token(agent.id)
    with pytest.raises(AgentNotFound):
        await repository.get_internal_token("nobody")


async def test_an_agent_that_passes_to_another_host_is_served_by_both(
    database: Database, repository: AgentRepository, tenant_id: str
) -> None:
    agent = create(database, repository, tenant_id)
    database.run(lambda c: set_agent_host(c, agent.id, "other", None))
    with pytest.raises(AgentOnOtherHost):
        await repository.get_here(agent.id)
    repository.passing.add(agent.id)
    assert (await repository.get_here(agent.id)).host_id == "other"


async def test_states_move_only_as_drawn(database: Database, repository: AgentRepository, tenant_id: str) -> None:
    agent = create(database, repository, tenant_id)

    def move(to: AgentState, reason: str | None = None) -> bool:
        return database.run(lambda c: repository.set_state(c, agent.id, to, reason))

    assert move(AgentState.FAILED, "because")
    assert (await repository.get(agent.id)).reason == "because"
    assert move(AgentState.STARTING)
    assert (await repository.get(agent.id)).reason is None
    assert move(AgentState.NOT_RUNNING)
    assert not move(AgentState.FAILED)
    assert (await repository.get(agent.id)).state is AgentState.NOT_RUNNING
    assert not database.run(lambda c: repository.set_state(c, "nobody", AgentState.RUNNING))


async def test_states_of_many_agents_change_where_the_transition_is_allowed(
    database: Database, repository: AgentRepository, tenant_id: str
) -> None:
    starting, stopped, deleted = (create(database, repository, tenant_id, name) for name in ("a", "b", "c"))
    database.run(lambda c: repository.set_state(c, stopped.id, AgentState.NOT_RUNNING))
    database.run(lambda c: repository.mark_deleted(c, deleted.id))
    every = [starting.id, stopped.id, deleted.id]
    database.run(lambda c: HostAgents(database, "host").set_states(c, every, AgentState.FAILED))
    found = {agent.id: agent.state for agent in await HostAgents(database, "host").list()}
    assert found == {
        starting.id: AgentState.FAILED,
        stopped.id: AgentState.NOT_RUNNING,
        deleted.id: AgentState.STARTING,
    }
    database.run(lambda c: HostAgents(database, "host").set_states(c, [], AgentState.RUNNING))


async def test_a_reason_is_bounded_and_shows_no_credential(
    database: Database, repository: AgentRepository, tenant_id: str
) -> None:
    agent = create(database, repository, tenant_id)
    token = (await repository.get_internal_token(agent.id)).reveal()
    database.run(lambda c: repository.set_state(c, agent.id, AgentState.FAILED, "x" * 9000 + f" key {token}"))
    reason = (await repository.get(agent.id)).reason
    assert reason is not None
    assert len(reason) <= REASON_LIMIT
    assert token not in reason


async def test_only_a_start_waits_for_something(
    database: Database, repository: AgentRepository, tenant_id: str
) -> None:
    agent = create(database, repository, tenant_id)
    token = (await repository.get_internal_token(agent.id)).reveal()
    database.run(lambda c: set_wait_reason(c, agent.id, f"The node loads an image of {token}"))
    reason = (await repository.get(agent.id)).reason
    assert reason is not None
    assert reason.startswith("The node loads an image of ")
    assert token not in reason
    database.run(lambda c: repository.set_state(c, agent.id, AgentState.RUNNING))
    database.run(lambda c: set_wait_reason(c, agent.id, "too late"))
    found = await repository.get(agent.id)
    assert (found.state, found.reason) == (AgentState.RUNNING, None)


async def test_a_dismissed_agent_is_gone_for_everybody_and_frees_its_place(
    database: Database, repository: AgentRepository, tenant_id: str
) -> None:
    agent = create(database, repository, tenant_id)
    database.run(lambda c: repository.mark_deleted(c, agent.id))
    with pytest.raises(AgentNotFound):
        await repository.get(agent.id)
    with pytest.raises(AgentNotFound):
        database.run(lambda c: repository.mark_deleted(c, agent.id))
    assert await repository.list(tenant_id) == []
    assert [gone.id for gone in await HostAgents(database, "host").list()] == [agent.id]
    assert not database.run(lambda c: repository.set_state(c, agent.id, AgentState.RUNNING))
    for _ in range(3):
        create(database, repository, tenant_id)
    database.run(lambda c: repository.purge(c, agent.id))
    assert agent.id not in [left.id for left in await HostAgents(database, "host").list()]
