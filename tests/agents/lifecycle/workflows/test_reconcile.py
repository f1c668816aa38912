"""The reconciler makes rows and processes agree after any failure of the server or of a container."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from roost import work
from roost.agents.lifecycle.workflows import model
from roost.agents.lifecycle.workflows.model import AgentStartFailed
from roost.agents.lifecycle.workflows.reconcile import run_concurrently
from roost.agents.registry.errors import AgentOnOtherHost
from roost.agents.registry.model import Agent, AgentState
from roost.agents.registry.repository import abandon_host
from roost.agents.workspace.snapshots import model as snapshots
from roost.core.db import Database
from roost.drivers.runtime.contract import ContainerSpec, RuntimeFailed
from roost.drivers.runtime.fake import FakeRuntime
from roost.work import OperationState
from tests.agents.lifecycle.workflows.lifecycle_env import LifecycleEnv, open_lifecycle_env, until

CRASH = ["sh", "-c", "exit 9"]


async def state(env: LifecycleEnv, agent: Agent) -> AgentState:
    return (await env.agents.get(agent.id)).state


async def reaches(env: LifecycleEnv, agent: Agent, wanted: AgentState) -> None:
    async def has_state() -> bool:
        return await state(env, agent) is wanted

    await until(has_state)


async def test_a_container_whose_server_crashed_is_adopted_unchanged(database: Database, folder: Path) -> None:
    async with open_lifecycle_env(database, folder, reconcile=True) as first:
        agents = [await first.create(name) for name in ("one", "two")]
        containers = await first.containers()
        gateways = [await first.gateway_pid(agent) for agent in agents]
    async with open_lifecycle_env(database, folder, reconcile=True) as second:
        assert await second.containers() == containers
        assert [await second.gateway_pid(agent) for agent in agents] == gateways
        assert {await state(second, agent) for agent in agents} == {AgentState.RUNNING}
        assert second.relays.open_now == {agent.id for agent in agents}


async def test_containers_without_processor_time_are_adopted(database: Database, folder: Path) -> None:
    async with open_lifecycle_env(database, folder, reconcile=True) as first:
        agents = [await first.create(name) for name in ("one", "two")]
        containers = await first.containers()
    frozen = [pid for pid in containers.values() if pid]
    for pid in frozen:
        os.kill(pid, signal.SIGSTOP)
    try:
        async with asyncio.timeout(5), open_lifecycle_env(database, folder, reconcile=True) as second:
            assert {await state(second, agent) for agent in agents} == {AgentState.RUNNING}
            assert second.relays.open_now == {agent.id for agent in agents}
            starts = work.list_busy_subjects
            assert not database.run(lambda c: starts(c, [agent.id for agent in agents], [model.START]))
            for pid in frozen:
                os.kill(pid, signal.SIGCONT)
            assert await second.containers() == containers
    finally:
        for pid in frozen:
            os.kill(pid, signal.SIGCONT)


async def test_starts_are_paced_by_the_runtime_and_preferred(database: Database, folder: Path) -> None:
    async with open_lifecycle_env(database, folder) as env:
        assert isinstance(env.runtime, FakeRuntime)
        env.runtime.slots, env.engine.becomes_ready = 1, False
        creating = [asyncio.create_task(env.create(name)) for name in ("one", "two", "three")]

        async def begun() -> bool:
            return len(await env.host_agents.list()) == 3 and bool(await env.containers())

        await until(begun)
        assert len(await env.containers()) == 1
        env.engine.becomes_ready = True
        agents = await asyncio.gather(*creating)
        assert set(env.runtime.preferred) >= {agent.id for agent in agents}


async def test_an_agent_that_lost_its_container_is_started(database: Database, folder: Path) -> None:
    async with open_lifecycle_env(database, folder, reconcile=True) as first:
        agent = await first.create()
        await first.warden(agent.id).write("kept.txt", b"kept")
    await FakeRuntime(folder).stop(agent.id, grace=0)
    async with open_lifecycle_env(database, folder, reconcile=True) as second:
        await reaches(second, agent, AgentState.RUNNING)
        assert await second.start.starter.is_up(agent)
        assert await second.warden(agent.id).read("kept.txt", limit=100) == b"kept"


async def test_an_agent_that_lost_its_container_with_a_snapshot_waiting_is_started(
    database: Database, folder: Path
) -> None:
    async with open_lifecycle_env(database, folder) as first:
        agent = await first.create()
    await FakeRuntime(folder).stop(agent.id, grace=0)
    await database.write(lambda c: work.add_operation(c, snapshots.SYNC, agent.id, "request", host=agent.host_id))
    async with open_lifecycle_env(database, folder, reconcile=True) as second:
        await reaches(second, agent, AgentState.RUNNING)
        assert await second.start.starter.is_up(agent)


async def test_an_agent_whose_gateway_died_keeps_its_container(database: Database, folder: Path) -> None:
    async with open_lifecycle_env(database, folder) as first:
        agent = await first.create()
        containers = await first.containers()
        await first.warden(agent.id).stop("gateway")
    async with open_lifecycle_env(database, folder, reconcile=True) as second:
        await until(lambda: second.start.starter.is_up(agent))
        await reaches(second, agent, AgentState.RUNNING)
        assert await second.containers() == containers


async def test_orphan_containers_are_stopped_and_their_files_kept(database: Database, folder: Path) -> None:
    runtime = FakeRuntime(folder)
    await runtime.start(ContainerSpec("orphan"))
    file = folder / "agents" / "orphan" / "workspace" / "kept.txt"
    file.write_text("kept")
    async with open_lifecycle_env(database, folder, reconcile=True) as env:
        assert await env.containers() == {}
    assert file.read_text() == "kept"


async def test_a_lost_container_is_noticed(database: Database, folder: Path) -> None:
    async with open_lifecycle_env(database, folder, reconcile=True) as env:
        agent = await env.create()
        pid = (await env.containers())[agent.id]
        assert pid is not None
        gateway = (await env.warden(agent.id).processes())["gateway"].pid
        assert gateway is not None
        os.kill(pid, signal.SIGKILL)
        os.killpg(gateway, signal.SIGKILL)  # a real container ends with all its processes

        async def back() -> bool:
            return (await env.containers()).get(agent.id) not in {None, pid} and await env.start.starter.is_up(agent)

        await until(back)
        await reaches(env, agent, AgentState.RUNNING)


async def test_a_crashing_gateway_is_failed_until_it_recovers(database: Database, folder: Path) -> None:
    async with open_lifecycle_env(database, folder, reconcile=True) as env:
        agent = await env.create()
        warden = env.warden(agent.id)
        await warden.stop("gateway")
        await warden.start("gateway", CRASH, env={})
        await reaches(env, agent, AgentState.FAILED)
        assert "keeps crashing" in str((await env.agents.get(agent.id)).reason)
        assert (await warden.processes())["gateway"].restarts >= 3
        await env.start.starter.start(agent)
        await reaches(env, agent, AgentState.RUNNING)
        assert (await env.agents.get(agent.id)).reason is None


async def test_an_agent_that_failed_to_start_is_not_started_again(database: Database, folder: Path) -> None:
    async with open_lifecycle_env(database, folder, reconcile=True) as env:
        with pytest.raises(AgentStartFailed) as failure:
            await env.create("fail-start")
        agent = failure.value.agent
        other = await env.create("other")
        await env.runtime.stop(other.id, grace=0)
        await reaches(env, other, AgentState.RUNNING)  # a check has run
        assert await state(env, agent) is AgentState.FAILED
        assert agent.id in await env.containers()


async def test_a_stop_ends_all_containers_and_the_next_start_brings_them_back(database: Database, folder: Path) -> None:
    async with open_lifecycle_env(database, folder, reconcile=True) as first:
        agents = [await first.create(name) for name in ("one", "two")]
        with pytest.raises(AgentStartFailed):
            await first.create("fail-start")
        await first.queue.stop()
        await first.services.reconciler.stop()
        assert await first.containers() == {}
        assert first.relays.open_now == set()
        assert {agent.state for agent in await first.host_agents.list()} == {AgentState.NOT_RUNNING}
    async with open_lifecycle_env(database, folder, reconcile=True) as second:
        for agent in agents:
            await reaches(second, agent, AgentState.RUNNING)


async def test_a_stop_that_keeps_containers_changes_no_agent(database: Database, folder: Path) -> None:
    async with open_lifecycle_env(database, folder, reconcile=True) as first:
        agent = await first.create()
        with pytest.raises(AgentStartFailed):
            await first.create("fail-start")
        containers, agents = await first.containers(), await first.host_agents.list()
        gateway = await first.gateway_pid(agent)
        await first.queue.stop()
        first.services.reconciler.keep_containers()
        await first.services.reconciler.stop()
        assert await first.containers() == containers
        assert await first.host_agents.list() == agents
    async with open_lifecycle_env(database, folder, reconcile=True) as second:
        assert await state(second, agent) is AgentState.RUNNING
        assert await second.gateway_pid(agent) == gateway


async def test_a_stop_ends_containers_whose_agents_have_another_host_now(database: Database, folder: Path) -> None:
    async with open_lifecycle_env(database, folder, reconcile=True) as env:
        agent = await env.settled()
        await database.write(lambda c: abandon_host(c, "host"))
        await env.services.reconciler.stop()
        assert await env.containers() == {}
        assert await state(env, agent) is AgentState.NOT_RUNNING


async def test_a_start_with_many_agents_writes_as_often_as_with_one(
    database: Database, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes: list[object] = []
    write = database.write
    monkeypatch.setattr(database, "write", lambda fn: writes.append(fn) or write(fn))
    env = LifecycleEnv(
        database, FakeRuntime(folder), folder, host="host", address=None, lease=15.0, every=60.0, build=60.0
    )
    counts: list[int] = []
    for new in (1, 9):
        for _ in range(new):
            await env.create_row()
        writes.clear()
        await env.services.reconciler.start()
        await env.services.reconciler.stop()
        counts.append(len(writes))
    agents = await env.host_agents.list()
    assert counts[0] == counts[1]
    assert {agent.state for agent in agents} == {AgentState.NOT_RUNNING}
    assert database.run(lambda c: work.list_busy_subjects(c, [agent.id for agent in agents], [model.START])) == {
        agent.id for agent in agents
    }


async def test_an_unfinished_start_is_not_enqueued_twice(database: Database, folder: Path) -> None:
    async with open_lifecycle_env(database, folder) as first:
        first.engine.becomes_ready = False
        starting = asyncio.create_task(first.create())
        await until(first.containers)
        await first.queue.stop(grace=0)
        starting.cancel()
    async with open_lifecycle_env(database, folder, reconcile=True) as second:
        (agent,) = await second.host_agents.list()
        await reaches(second, agent, AgentState.RUNNING)
        assert len(await second.containers()) == 1
        assert (await second.warden(agent.id).processes())["gateway"].restarts == 0


async def test_remains_of_a_deleted_agent_are_removed(database: Database, folder: Path) -> None:
    async with open_lifecycle_env(database, folder) as first:
        agent = await first.create()
        await first.db.write(lambda c: first.agents.mark_deleted(c, agent.id))
    async with open_lifecycle_env(database, folder, reconcile=True) as second:

        async def purged() -> bool:
            return not await second.host_agents.list()

        await until(purged)
        assert await second.containers() == {}
        assert not (folder / "agents" / agent.id).exists()


async def test_a_failure_of_one_agent_does_not_affect_others(database: Database, folder: Path) -> None:
    async with open_lifecycle_env(database, folder, reconcile=True) as first:
        bad, good = await first.create("bad"), await first.create("good")
    async with open_lifecycle_env(database, folder) as second:
        second.relays.broken.add(bad.id)
        await second.services.reconciler.start()
        await reaches(second, bad, AgentState.FAILED)
        assert await state(second, good) is AgentState.RUNNING


async def test_two_servers_of_one_database_leave_each_others_agents_alone(database: Database, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    async with open_lifecycle_env(database, one, host="one", reconcile=True) as first:
        agent = await first.settled()
        containers = await first.containers()
        async with open_lifecycle_env(database, two, host="two", reconcile=True) as second:
            own = await second.settled()
            assert set(await second.containers()) == {own.id}
            for call in (
                second.services.restart(agent.id),
                second.services.update(agent.id, "2.0.0"),
                second.services.delete.delete(agent.id),
                second.start.scripts.retry(agent.id),
                second.runtimes.dial(agent.id),
            ):
                with pytest.raises(AgentOnOtherHost):
                    await call
            assert await second.services.details.get_process(agent) == ("running", None)
            await second.queue.stop()
            await second.services.reconciler.stop()
            assert await second.containers() == {}
            assert await state(second, own) is AgentState.NOT_RUNNING
        assert await first.containers() == containers
        assert await state(first, agent) is AgentState.RUNNING
        operation = await database.write(lambda c: work.add_operation(c, model.START, own.id, host="two"))
        assert (await first.queue.wait(operation.id, 0.2)).state is OperationState.PENDING
        await first.services.delete.delete(agent.id)


async def test_agents_without_a_host_belong_to_the_server_that_has_their_files(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "is_sqlite", False)  # where servers share the database
    async with open_lifecycle_env(database, tmp_path / "one", host="one") as first:
        agent, lost = await first.settled(), await first.create_row("lost")
    database.run(lambda c: abandon_host(c, "one"))
    async with open_lifecycle_env(database, tmp_path / "two", host="two", reconcile=True) as second:
        assert await second.containers() == {}
        await second.services.delete.delete(lost.id)
        with pytest.raises(AgentOnOtherHost):
            await second.agents.get_here(agent.id)
    async with open_lifecycle_env(database, tmp_path / "one", host="again", reconcile=True) as third:
        await reaches(third, agent, AgentState.RUNNING)
        assert set(await third.containers()) == {agent.id}
        await third.services.delete.delete(agent.id)


@pytest.mark.parametrize("wrong", [AgentState.NOT_RUNNING, AgentState.FAILED])
async def test_an_agent_that_runs_in_spite_of_its_state_is_found(
    database: Database, folder: Path, wrong: AgentState
) -> None:
    async with open_lifecycle_env(database, folder, reconcile=True) as env:
        agent = await env.settled()
        await database.write(lambda c: env.agents.set_state(c, agent.id, wrong))
        await reaches(env, agent, AgentState.RUNNING)
    await database.write(lambda c: env.agents.set_state(c, agent.id, wrong))
    async with open_lifecycle_env(database, folder, reconcile=True, every=60) as second:
        await reaches(second, agent, AgentState.RUNNING)


async def test_a_container_that_does_not_stop_does_not_keep_others_running(database: Database, folder: Path) -> None:
    class StuckRuntime(FakeRuntime):
        async def stop(self, agent_id: str, grace: float = 5.0) -> None:
            if agent_id == bad.id:
                raise RuntimeFailed("it does not end")
            await super().stop(agent_id, grace)

    async with open_lifecycle_env(database, folder) as first:
        bad, good = await first.create("bad"), await first.create("good")
    async with open_lifecycle_env(database, folder, runtime=StuckRuntime(folder), reconcile=True) as second:
        await second.services.reconciler.stop()
        assert set(await second.containers()) == {bad.id}
        assert await state(second, good) is AgentState.NOT_RUNNING
        assert await state(second, bad) is AgentState.RUNNING


async def test_actions_run_some_at_a_time_and_a_failure_stops_none() -> None:
    ran, running, most = list[int](), 0, 0

    async def act(number: int) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        ran.append(number)
        if number < 40:
            raise ValueError(number)

    with pytest.raises(ValueError, match=r"^0$"):
        await run_concurrently(act(number) for number in range(100))
    assert sorted(ran) == list(range(100))
    assert most == 16
