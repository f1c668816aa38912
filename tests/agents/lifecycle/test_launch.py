"""Launch: an agent is there when it answers, and an order that cannot be met leaves nothing."""

import asyncio

import pytest

from roost.agents.channels.errors import ChannelPlanTooSmall, InvalidChannelToken, MissingBotToken, UnsupportedChannel
from roost.agents.channels.model import ChannelRequest as ChannelOrder
from roost.agents.lifecycle.errors import (
    AgentStartFailed,
    UnknownEngine,
)
from roost.agents.lifecycle.model import CreateAgent
from roost.agents.registry.errors import AgentLimitReached
from roost.agents.registry.model import AgentProfile, AgentState
from roost.agents.secrets.errors import SecretNotFound
from roost.core.problem import Problem
from roost.core.sensitive import Sensitive
from roost.drivers.engine.contract import EngineNotInstalled
from roost.identity.caller import Plan
from tests.agents.lifecycle.house import House

BOT = ChannelOrder(Sensitive("123456:" + "x" * 35))


async def test_a_created_agent_answers_and_has_all_that_is_its_own(home: House) -> None:
    agent = await home.create("Ada", engine="fake")
    assert (agent.state, agent.engine, agent.engine_version) == (AgentState.RUNNING, "fake", "1.0.0")
    assert await home.services.starter.is_up(agent)
    assert set(await home.containers()) == {agent.id} == home.relays.open_now
    token = await home.gateways.read(agent.id)
    assert token.reveal().startswith("rst_")
    assert token != await home.roster.get_internal_token(agent.id)


async def test_several_at_once_are_several(home: House) -> None:
    agents = await asyncio.gather(*(home.create(f"n{number}") for number in range(3)))
    assert {agent.state for agent in agents} == {AgentState.RUNNING}
    assert set(await home.containers()) == {agent.id for agent in agents}


async def test_a_gateway_that_exits_leaves_a_failed_agent_with_its_box(home: House) -> None:
    with pytest.raises(AgentStartFailed) as failure:
        await home.create("fail-start")
    agent = failure.value.agent
    assert agent.state is AgentState.FAILED
    assert agent.reason is not None
    assert "code 3" in agent.reason
    assert "fake gateway was told to fail" in agent.reason
    assert (await home.warden(agent.id).exec(["true"])).exit_code == 0


async def test_the_default_version_or_else_the_newest(home: House) -> None:
    home.engine.install("1.1.0", lambda *_: None)
    assert (await home.create("one")).engine_version == "1.0.0"
    home.engine.remove("1.0.0")
    assert (await home.create("two")).engine_version == "1.1.0"


async def test_an_engine_has_to_be_installed(home: House) -> None:
    with pytest.raises(UnknownEngine):
        await home.create(engine="other")
    home.engine.remove("1.0.0")
    with pytest.raises(EngineNotInstalled):
        await home.create()
    assert await home.roster.list_all() == []


async def test_the_plans_limit_is_told_before_anything_starts(home: House) -> None:
    caller = home.caller("small", Plan.FREE)
    await home.services.launch.create(caller, CreateAgent(AgentProfile("one")))
    with pytest.raises(AgentLimitReached):
        await home.services.launch.create(caller, CreateAgent(AgentProfile("two")))
    assert len(await home.containers()) == 1


@pytest.mark.parametrize(
    ("order", "problem"),
    [
        ({"secret_ids": ["x"]}, SecretNotFound),
        ({"channels": {"sms": BOT}}, UnsupportedChannel),
        ({"channels": {"telegram": ChannelOrder()}}, MissingBotToken),
        ({"channels": {"telegram": BOT, "sms": BOT}}, UnsupportedChannel),
        ({"channels": {"telegram": ChannelOrder(Sensitive("1:x"))}}, InvalidChannelToken),
        ({"channels": {"whatsapp": BOT}}, UnsupportedChannel),
    ],
)
async def test_what_cannot_be_met_is_refused(home: House, order: dict, problem: type[Problem]) -> None:
    with pytest.raises(problem):
        await home.create(**order)
    assert await home.roster.list_all() == []


async def test_channels_are_for_paid_plans(home: House) -> None:
    order = CreateAgent(AgentProfile("a"), channels={"telegram": BOT})
    with pytest.raises(ChannelPlanTooSmall):
        await home.services.launch.create(home.caller("small", Plan.FREE), order)
