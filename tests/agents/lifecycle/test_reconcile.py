"""The reconciler: whatever happened to the server or to a container, rows and processes agree again soon after."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from roost.agents.lifecycle.errors import AgentStartFailed
from roost.agents.registry.model import Agent, AgentState
from roost.core.db import Database
from roost.drivers.runtime.contract import ContainerSpec, RuntimeFailed
from roost.drivers.runtime.fake import FakeRuntime
from tests.agents.lifecycle.lifecycle_env import LifecycleEnv, open_lifecycle_env, until

CRASH = ["sh", "-c", "exit 9"]


async def state(env: LifecycleEnv, agent: Agent) -> AgentState:
    return (await env.roster.get(agent.id)).state


async def reaches(env: LifecycleEnv, agent: Agent, wanted: AgentState) -> None:
    async def there() -> bool:
        return await state(env, agent) is wanted

    await until(there)


async def test_a_box_whose_server_vanished_is_adopted_untouched(database: Database, folder: Path) -> None:
    async with open_lifecycle_env(database, folder, reconcile=True) as first:
        agents = [await first.create(name) for name in ("one", "two")]
        containers = await first.containers()
        gateways = [await first.gateway_pid(agent) for agent in agents]
    async with open_lifecycle_env(database, folder, reconcile=True) as second:
        assert await second.containers() == containers
        assert [await second.gateway_pid(agent) for agent in agents] == gateways
        assert {await state(second, agent) for agent in agents} == {AgentState.RUNNING}
        assert second.relays.open_now == {agent.id for agent in agents}


async def test_one_that_lost_its_box_meanwhile_is_started(database: Database, folder: Path) -> None:
    async with open_lifecycle_env(database, folder, reconcile=True) as first:
        agent = await first.create()
        await first.warden(agent.id).write("kept.txt", b"kept")
    await FakeRuntime(folder).stop(agent.id, grace=0)
    async with open_lifecycle_env(database, folder, reconcile=True) as second:
        await reaches(second, agent, AgentState.RUNNING)
        assert await second.services.starter.is_up(agent)
        assert await second.warden(agent.id).read("kept.txt", limit=100) == b"kept"


async def test_one_whose_gateway_is_dead_keeps_its_box(database: Database, folder: Path) -> None:
    async with open_lifecycle_env(database, folder) as first:
        agent = await first.create()
        containers = await first.containers()
        await first.warden(agent.id).stop("gateway")
    async with open_lifecycle_env(database, folder, reconcile=True) as second:
        await reaches(second, agent, AgentState.RUNNING)
        assert await second.services.starter.is_up(agent)
        assert await second.containers() == containers


async def test_strays_are_ended_and_their_files_kept(database: Database, folder: Path) -> None:
    runtime = FakeRuntime(folder)
    await runtime.start(ContainerSpec("stray"))
    file = folder / "agents" / "stray" / "workspace" / "kept.txt"
    file.write_text("kept")
    async with open_lifecycle_env(database, folder, reconcile=True) as env:
        assert await env.containers() == {}
    assert file.read_text() == "kept"


async def test_a_box_that_vanishes_is_noticed(database: Database, folder: Path) -> None:
    async with open_lifecycle_env(database, folder, reconcile=True) as env:
        agent = await env.create()
        pid = (await env.containers())[agent.id]
        assert pid is not None
        gateway = (await env.warden(agent.id).processes())["gateway"].pid
        assert gateway is not None
        os.kill(pid, signal.SIGKILL)
        os.killpg(gateway, signal.SIGKILL)  # a real container takes all that is in it along

        async def back() -> bool:
            return (await env.containers()).get(agent.id) not in {None, pid} and await env.services.starter.is_up(agent)

        await until(back)
        await reaches(env, agent, AgentState.RUNNING)


async def test_a_gateway_that_crashes_again_and_again_has_failed_until_it_comes_up(
    database: Database, folder: Path
) -> None:
    async with open_lifecycle_env(database, folder, reconcile=True) as env:
        agent = await env.create()
        warden = env.warden(agent.id)
        await warden.stop("gateway")
        await warden.start("gateway", CRASH, env={})
        await reaches(env, agent, AgentState.FAILED)
        assert "keeps crashing" in str((await env.roster.get(agent.id)).reason)
        assert (await warden.processes())["gateway"].restarts >= 3
        await env.services.starter.start(agent)
        await reaches(env, agent, AgentState.RUNNING)
        assert (await env.roster.get(agent.id)).reason is None


async def test_one_that_failed_to_start_is_left_alone_while_the_server_runs(database: Database, folder: Path) -> None:
    async with open_lifecycle_env(database, folder, reconcile=True) as env:
        with pytest.raises(AgentStartFailed) as failure:
            await env.create("fail-start")
        agent = failure.value.agent
        beside = await env.create("beside")
        await env.runtime.stop(beside.id, grace=0)
        await reaches(env, beside, AgentState.RUNNING)  # it has looked
        assert await state(env, agent) is AgentState.FAILED
        assert agent.id in await env.containers()


async def test_a_stop_ends_all_boxes_and_the_next_start_brings_them_back(database: Database, folder: Path) -> None:
    async with open_lifecycle_env(database, folder, reconcile=True) as first:
        agents = [await first.create(name) for name in ("one", "two")]
        with pytest.raises(AgentStartFailed):
            await first.create("fail-start")
        await first.queue.stop()
        await first.services.reconciler.stop()
        assert await first.containers() == {}
        assert first.relays.open_now == set()
        assert {agent.state for agent in await first.roster.list_all()} == {AgentState.NOT_RUNNING}
    async with open_lifecycle_env(database, folder, reconcile=True) as second:
        for agent in agents:
            await reaches(second, agent, AgentState.RUNNING)


async def test_a_start_under_way_is_not_started_twice(database: Database, folder: Path) -> None:
    async with open_lifecycle_env(database, folder) as first:
        first.engine.let = False
        starting = asyncio.create_task(first.create())
        await until(first.containers)
        await first.queue.stop(grace=0)
        starting.cancel()
    async with open_lifecycle_env(database, folder, reconcile=True) as second:
        (agent,) = await second.roster.list_all()
        await reaches(second, agent, AgentState.RUNNING)
        assert len(await second.containers()) == 1
        assert (await second.warden(agent.id).processes())["gateway"].restarts == 0


async def test_what_is_left_of_a_deleted_agent_is_removed(database: Database, folder: Path) -> None:
    """Also when whoever deleted it gave up long ago."""
    async with open_lifecycle_env(database, folder) as first:
        agent = await first.create()
        await first.db.write(lambda c: first.roster.mark_deleted(c, agent.id))
    async with open_lifecycle_env(database, folder, reconcile=True) as second:

        async def erased() -> bool:
            return not await second.roster.list_all()

        await until(erased)
        assert await second.containers() == {}
        assert not (folder / "agents" / agent.id).exists()


async def test_trouble_with_one_agent_is_none_for_the_others(database: Database, folder: Path) -> None:
    async with open_lifecycle_env(database, folder, reconcile=True) as first:
        bad, good = await first.create("bad"), await first.create("good")
    async with open_lifecycle_env(database, folder) as second:
        second.relays.broken.add(bad.id)
        await second.services.reconciler.start()
        await reaches(second, bad, AgentState.FAILED)
        assert await state(second, good) is AgentState.RUNNING


async def test_a_box_that_does_not_end_does_not_keep_the_others_running(database: Database, folder: Path) -> None:
    class Stuck(FakeRuntime):
        async def stop(self, agent_id: str, grace: float = 5.0) -> None:
            if agent_id == bad.id:
                raise RuntimeFailed("it does not end")
            await super().stop(agent_id, grace)

    async with open_lifecycle_env(database, folder) as first:
        bad, good = await first.create("bad"), await first.create("good")
    async with open_lifecycle_env(database, folder, runtime=Stuck(folder), reconcile=True) as second:
        await second.services.reconciler.stop()
        assert set(await second.containers()) == {bad.id}
        assert await state(second, good) is AgentState.NOT_RUNNING
        assert await state(second, bad) is AgentState.RUNNING
