"""The start operation: from any state to a running agent or a reason, and idempotent."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from roost.agents.lifecycle.workflows.model import START, AgentStartFailed
from roost.agents.registry.model import Agent, AgentState
from roost.core.db import Database
from roost.drivers.runtime.contract import Container, ContainerSpec, RuntimeFailed
from roost.drivers.runtime.fake import FakeRuntime
from roost.work import OperationState
from tests.agents.lifecycle.workflows.lifecycle_env import LifecycleEnv, open_lifecycle_env, until


async def test_from_a_row_to_a_running_agent(env: LifecycleEnv) -> None:
    agent = await env.create_row()
    assert (await env.run(START, agent.id)).state is OperationState.DONE
    assert (await env.agents.get(agent.id)).state is AgentState.RUNNING
    assert await env.start.starter.is_up(agent)


async def test_a_second_start_replaces_the_gateway_in_the_same_container(env: LifecycleEnv) -> None:
    agent = await env.create()
    container, gateway = await env.containers(), await env.gateway_pid(agent)
    await env.run(START, agent.id)
    assert await env.containers() == container
    assert await env.gateway_pid(agent) not in {gateway, None}


async def test_a_new_container_keeps_the_files(env: LifecycleEnv) -> None:
    agent = await env.create()
    container = await env.containers()
    await env.warden(agent.id).write("kept.txt", b"kept")
    await env.run(START, agent.id, {"version": "1.0.0"})
    assert (await env.containers())[agent.id] != container[agent.id]
    assert await env.warden(agent.id).read("kept.txt", limit=100) == b"kept"


async def test_a_missing_agent_is_ignored(env: LifecycleEnv) -> None:
    assert (await env.run(START, "nobody")).state is OperationState.DONE
    assert await env.containers() == {}


async def test_a_missing_engine_is_reported(env: LifecycleEnv) -> None:
    agent = await env.create_row()
    env.engine.remove("1.0.0")
    assert (await env.run(START, agent.id)).state is OperationState.FAILED
    failed = await env.agents.get(agent.id)
    assert (failed.state, failed.reason) == (AgentState.FAILED, "fake 1.0.0 is not installed")


async def test_unexpected_errors_are_not_shown(env: LifecycleEnv) -> None:
    agent = await env.create_row()
    env.relays.broken.add(agent.id)
    assert (await env.run(START, agent.id)).state is OperationState.FAILED
    assert (await env.agents.get(agent.id)).reason == "Internal error"
    env.relays.broken.clear()
    assert (await env.run(START, agent.id)).state is OperationState.DONE
    assert (await env.agents.get(agent.id)).reason is None


async def test_an_agent_that_is_deleted_meanwhile_does_not_come_back(env: LifecycleEnv) -> None:
    env.engine.becomes_ready = False
    agent = await env.create_row()
    starting = asyncio.create_task(env.run(START, agent.id))
    await until(lambda: _has_gateway(env, agent.id))
    await env.services.delete.delete(agent.id)
    assert (await starting).state is OperationState.FAILED
    assert await env.containers() == {}
    assert await env.host_agents.list() == []


@pytest.mark.parametrize("clean", [True, False], ids=["given back", "taken over"])
async def test_a_start_that_is_cut_off_is_finished_by_the_next_process(
    database: Database, folder: Path, clean: bool
) -> None:
    """The second process finishes, whether the first gave its work back or lives on without its lease."""
    async with open_lifecycle_env(database, folder, lease=1.5) as first:
        first.engine.becomes_ready = False
        agent = await first.create_row()
        cut_off = asyncio.create_task(first.run(START, agent.id))
        await until(lambda: _has_gateway(first, agent.id))
        if clean:
            await first.queue.stop(grace=0)
        async with open_lifecycle_env(database, folder) as second:
            done = await cut_off
            assert (done.state, done.attempts) == (OperationState.DONE, 2)
            assert (await second.agents.get(agent.id)).state is AgentState.RUNNING
            assert await second.start.starter.is_up(agent)
            assert len(await second.containers()) == 1


async def _has_gateway(env: LifecycleEnv, agent_id: str) -> bool:
    if agent_id not in await env.containers():
        return False
    return "gateway" in await env.warden(agent_id).processes()


async def test_an_agent_whose_container_is_killed_twice_during_a_start_comes_back(
    env: LifecycleEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, start, kills = await env.create_row(), env.start.starter.start, [1, 2]

    async def start_in_a_killed_container(started: Agent) -> None:
        if kills:
            kills.pop()
            await env.runtime.stop(started.id, grace=0)
        await start(started)

    monkeypatch.setattr(env.start.starter, "start", start_in_a_killed_container)
    monkeypatch.setattr("roost.work.model._FIRST_RETRY", timedelta(0))
    assert (await env.run(START, agent.id)).state is OperationState.DONE
    assert (await env.agents.get(agent.id)).state is AgentState.RUNNING
    assert await env.start.starter.is_up(agent)


async def test_a_reason_has_no_path_of_the_host(database: Database, folder: Path) -> None:
    class FullRuntime(FakeRuntime):
        async def start(self, spec: ContainerSpec) -> Container:
            raise RuntimeFailed(f"The container could not be started: [Errno 28] No space left: '{folder}/a b/x.sock'")

    async with open_lifecycle_env(database, folder, runtime=FullRuntime(folder)) as full:
        agent = await full.create_row()
        await full.run(START, agent.id)
        reason = (await full.agents.get(agent.id)).reason
        assert reason == "The container could not be started: [Errno 28] No space left: [path] [path]"


async def test_a_create_is_answered_when_the_server_stops(env: LifecycleEnv) -> None:
    env.engine.becomes_ready = False
    creating = asyncio.create_task(env.create())
    await until(env.containers)
    env.queue.limit_waits(0)
    with pytest.raises(AgentStartFailed) as failure:
        await creating
    assert failure.value.agent.state is AgentState.STARTING
