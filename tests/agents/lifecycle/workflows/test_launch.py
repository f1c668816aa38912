"""Launch: an agent exists once it answers, and a rejected request leaves no trace."""

import asyncio

import pytest
from sqlalchemy import event

from roost.agents.lifecycle.workflows.model import (
    START_GRACE,
    AgentStartFailed,
    CreateAgent,
    LaunchSource,
    UnknownEngine,
)
from roost.agents.registry.errors import AgentLimitReached
from roost.agents.registry.model import AgentProfile, AgentState
from roost.agents.setup.channels.model import (
    ChannelPlanTooSmall,
    ChannelRequest,
    InvalidChannelToken,
    MissingBotToken,
    UnsupportedChannel,
)
from roost.agents.setup.secrets.model import SecretNotFound
from roost.core import clock
from roost.core.problem import Problem
from roost.core.sensitive import Sensitive
from roost.drivers.engine.contract import EngineNotInstalled
from roost.drivers.runtime.fake import FakeRuntime
from roost.identity.caller import Plan
from tests.agents.lifecycle.workflows.lifecycle_env import LifecycleEnv, until

BOT = ChannelRequest(Sensitive("123456:" + "x" * 35))


async def test_a_created_agent_answers_and_has_its_container_relays_and_tokens(env: LifecycleEnv) -> None:
    agent = await env.create("Ada", engine="fake")
    assert (agent.state, agent.engine, agent.engine_version) == (AgentState.RUNNING, "fake", "1.0.0")
    assert await env.start.starter.is_up(agent)
    assert set(await env.containers()) == {agent.id} == env.relays.open_now
    token = await env.gateways.read(agent.id)
    assert token.reveal().startswith("rst_")
    assert token != await env.agents.get_internal_token(agent.id)


async def test_concurrent_launches_create_several_agents(env: LifecycleEnv) -> None:
    agents = await asyncio.gather(*(env.create(f"n{number}") for number in range(3)))
    assert {agent.state for agent in agents} == {AgentState.RUNNING}
    assert set(await env.containers()) == {agent.id for agent in agents}


async def test_a_start_in_the_queue_keeps_its_whole_time(env: LifecycleEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(env.runtime, FakeRuntime)
    env.runtime.slots = 0
    creation = asyncio.create_task(env.create())
    await until(env.host_agents.list)
    now, seconds = clock.monotonic_seconds, env.engine.start_deadline + START_GRACE + 1
    monkeypatch.setattr(clock, "monotonic_seconds", lambda: now() + seconds)
    reads: list[object] = []
    event.listen(env.db._reader, "begin", reads.append)

    async def has_looked_twice() -> bool:
        return len(reads) > 1 or creation.done()

    await until(has_looked_twice)
    assert not creation.done()
    env.runtime.slots = 1
    assert (await creation).state is AgentState.RUNNING


async def test_a_gateway_that_exits_leaves_a_failed_agent_with_its_container(env: LifecycleEnv) -> None:
    with pytest.raises(AgentStartFailed) as failure:
        await env.create("fail-start")
    agent = failure.value.agent
    assert agent.state is AgentState.FAILED
    assert agent.reason is not None
    assert "code 3" in agent.reason
    assert "fake gateway was told to fail" in agent.reason
    assert (await env.warden(agent.id).exec(["true"])).exit_code == 0


async def test_the_default_version_or_else_the_newest(env: LifecycleEnv) -> None:
    env.engine.install("1.1.0", lambda *_: None)
    assert (await env.create("one")).engine_version == "1.0.0"
    env.engine.remove("1.0.0")
    assert (await env.create("two")).engine_version == "1.1.0"


async def test_an_engine_has_to_be_installed(env: LifecycleEnv) -> None:
    with pytest.raises(UnknownEngine) as refused:
        await env.create(engine="other")
    assert refused.value.detail == f"engine must be one of {env.engine.id}, got 'other'"
    env.engine.remove("1.0.0")
    with pytest.raises(EngineNotInstalled):
        await env.create()
    assert await env.host_agents.list() == []


async def test_the_quota_is_checked_before_anything_starts(env: LifecycleEnv) -> None:
    caller = env.caller("small", Plan.FREE)
    await env.services.launch.create(caller, LaunchSource(CreateAgent(AgentProfile("one"))))
    with pytest.raises(AgentLimitReached):
        await env.services.launch.create(caller, LaunchSource(CreateAgent(AgentProfile("two"))))
    assert len(await env.containers()) == 1


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"secret_ids": ["x"]}, SecretNotFound),
        ({"channels": {"sms": BOT}}, UnsupportedChannel),
        ({"channels": {"telegram": ChannelRequest()}}, MissingBotToken),
        ({"channels": {"telegram": BOT, "sms": BOT}}, UnsupportedChannel),
        ({"channels": {"telegram": ChannelRequest(Sensitive("1:x"))}}, InvalidChannelToken),
        ({"channels": {"whatsapp": BOT}}, UnsupportedChannel),
    ],
)
async def test_invalid_requests_are_rejected(env: LifecycleEnv, fields: dict, problem: type[Problem]) -> None:
    with pytest.raises(problem):
        await env.create(**fields)
    assert await env.host_agents.list() == []


async def test_channels_are_for_paid_plans(env: LifecycleEnv) -> None:
    source = LaunchSource(CreateAgent(AgentProfile("a"), channels={"telegram": BOT}))
    with pytest.raises(ChannelPlanTooSmall):
        await env.services.launch.create(env.caller("small", Plan.FREE), source)
