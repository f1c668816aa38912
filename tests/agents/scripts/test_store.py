"""The table of scripts, on both databases."""

import pytest

from roost.agents.roster.model import Agent, Profile
from roost.agents.roster.service import Roster
from roost.agents.scripts import store
from roost.agents.scripts.model import BUILD, START, Script, ScriptState
from roost.core import clock
from roost.core.db import Database
from roost.identity import tenants
from roost.identity.caller import Plan
from tests.agents.lifecycle.house import SEALER

DONE = Script(ScriptState.SUCCESS, None, 0, "d" * 64, clock.now(), clock.now())


@pytest.fixture(params=["sqlite", "postgresql"])
def dialect(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def roster(database: Database) -> Roster:
    return Roster(database, SEALER, {Plan.FREE: 1, Plan.PAID: 20})


@pytest.fixture
def agent(database: Database, roster: Roster) -> Agent:
    tenant = database.run(lambda c: tenants.ensure(c, "acme", Plan.PAID)).id
    return database.run(lambda c: roster.admit(c, tenant, Profile("Ada"), "fake", "1.0.0"))


def test_a_script_is_kept_changed_and_forgotten(database: Database, agent: Agent) -> None:
    assert database.run(lambda c: store.of_agent(c, agent.id)) == {}
    running = Script(ScriptState.RUNNING, started_at=clock.now())
    for script in (Script(ScriptState.PENDING), running, DONE):
        assert database.run(lambda c, script=script: store.save(c, agent.id, BUILD, script))
        assert database.run(lambda c: store.of_agent(c, agent.id)) == {BUILD: script}
    assert database.run(lambda c: store.save(c, agent.id, START, running))
    assert database.run(lambda c: store.save(c, agent.id, BUILD, Script()))
    assert database.run(lambda c: store.of_agent(c, agent.id)) == {START: running}


def test_an_agent_that_goes_takes_its_scripts_along(database: Database, roster: Roster, agent: Agent) -> None:
    database.run(lambda c: store.save(c, agent.id, BUILD, DONE))
    database.run(lambda c: roster.erase(c, agent.id))
    assert database.run(lambda c: store.of_agent(c, agent.id)) == {}
    assert database.run(lambda c: store.save(c, agent.id, BUILD, DONE)) is False
