"""The table of scripts, on both databases."""

import pytest

from roost.agents.registry.model import Agent, AgentProfile
from roost.agents.registry.repository import AgentRepository
from roost.agents.workspace.scripts import store
from roost.agents.workspace.scripts.model import BUILD, START, ScriptState, ScriptStatus
from roost.core import clock
from roost.core.db import Database
from roost.identity import tenants
from roost.identity.caller import Plan
from tests.agents.lifecycle.workflows.lifecycle_env import SEALER

DONE = ScriptStatus(ScriptState.SUCCESS, None, 0, "d" * 64, clock.utc_now(), clock.utc_now())


@pytest.fixture(params=["sqlite", "postgresql"])
def dialect(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def repository(database: Database) -> AgentRepository:
    return AgentRepository(database, SEALER, {Plan.FREE: 1, Plan.PAID: 20}, "host")


@pytest.fixture
def agent(database: Database, repository: AgentRepository) -> Agent:
    tenant = database.run(lambda c: tenants.ensure_tenant(c, "acme", Plan.PAID)).id
    return database.run(lambda c: repository.create(c, tenant, AgentProfile("Ada"), "fake", "1.0.0"))


def test_a_script_is_kept_changed_and_forgotten(database: Database, agent: Agent) -> None:
    assert database.run(lambda c: store.list_scripts(c, agent.id)) == {}
    running = ScriptStatus(ScriptState.RUNNING, started_at=clock.utc_now())
    for script in (ScriptStatus(ScriptState.PENDING), running, DONE):
        assert database.run(lambda c, script=script: store.save_script(c, agent.id, BUILD, script))
        assert database.run(lambda c: store.list_scripts(c, agent.id)) == {BUILD: script}
    assert database.run(lambda c: store.save_script(c, agent.id, START, running))
    assert database.run(lambda c: store.save_script(c, agent.id, BUILD, ScriptStatus()))
    assert database.run(lambda c: store.list_scripts(c, agent.id)) == {START: running}


def test_an_agent_that_goes_takes_its_scripts_along(
    database: Database, repository: AgentRepository, agent: Agent
) -> None:
    database.run(lambda c: store.save_script(c, agent.id, BUILD, DONE))
    database.run(lambda c: repository.purge(c, agent.id))
    assert database.run(lambda c: store.list_scripts(c, agent.id)) == {}
    assert database.run(lambda c: store.save_script(c, agent.id, BUILD, DONE)) is False
