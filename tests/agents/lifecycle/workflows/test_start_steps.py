"""The steps of a start: their order, a start that is cut off at any of them, and their undoing."""

import asyncio
from pathlib import Path
from types import SimpleNamespace

import pytest

from roost.agents.lifecycle.workflows.model import START, DiskLimitReached
from roost.agents.lifecycle.workflows.start_steps import StartContext
from roost.agents.registry.model import AgentState
from roost.core.db import Database
from roost.core.problem import ServiceUnavailable
from roost.drivers.runtime.contract import Container, ContainerSpec
from roost.drivers.runtime.fake import FakeRuntime
from roost.work import OperationState
from tests.agents.lifecycle.workflows.lifecycle_env import LifecycleEnv, open_lifecycle_env
from tests.architecture.code import ROOT

NAMES = ["version", "needs", "engine", "disk", "relays", "container", "push", "skills", "gateway"]


async def test_the_steps_have_the_order_that_the_docs_describe(env: LifecycleEnv) -> None:
    assert [step.name for step in env.start.start.steps] == NAMES
    assert ", ".join(NAMES) in (ROOT / "docs/builders/request-path.md").read_text()


@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("name", NAMES)
async def test_a_start_that_is_cut_off_at_a_step_is_finished_by_the_next_server(
    database: Database, folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, is_done: bool
) -> None:
    reached = asyncio.Event()
    async with open_lifecycle_env(database, folder, lease=1.5) as first:
        agent = await first.create_row()
        step = next(step for step in first.start.start.steps if step.name == name)
        run = step.run

        async def hang(start: StartContext) -> None:
            if is_done:
                await run(start)
            reached.set()
            await asyncio.Event().wait()

        monkeypatch.setattr(step, "run", hang)
        starting = asyncio.create_task(first.run(START, agent.id, {"version": "1.1.0"}))
        await asyncio.wait_for(reached.wait(), 20)
        await first.queue.stop(grace=0)
        async with open_lifecycle_env(database, folder, reconcile=True) as second:
            second.engine.install("1.1.0", lambda *_: None)  # which real engines keep on the disk
            assert (await second.queue.wait((await starting).id, 20)).state is OperationState.DONE
            started = await second.agents.get(agent.id)
            assert (started.state, started.engine_version) == (AgentState.RUNNING, "1.1.0")
            assert await second.start.starter.is_up(started)
            assert set(await second.containers()) == {agent.id} == second.relays.open_now


async def test_a_step_that_finds_needs_ends_the_start(env: LifecycleEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    async def prepare(_: object) -> str:
        return "The agent waits for X"

    agent = await env.create_row()
    step = next(step for step in env.start.start.steps if step.name == "needs")
    monkeypatch.setattr(step, "instances", SimpleNamespace(prepare=prepare))
    operation = await env.run(START, agent.id)
    assert (operation.state, operation.result) == (OperationState.DONE, {"waits_for": "The agent waits for X"})
    assert (await env.agents.get(agent.id)).state is AgentState.NOT_RUNNING
    assert (await env.containers(), env.relays.open_now) == ({}, set())


async def test_a_container_for_a_workspace_has_no_gateway_and_is_undone(env: LifecycleEnv) -> None:
    agent = await env.create_row()
    async with env.start.start.open_workspace(agent) as warden:
        assert set(await env.containers()) == {agent.id} == env.relays.open_now
        assert await warden.processes() == {}
    assert (await env.containers(), env.relays.open_now) == ({}, set())


async def test_a_container_that_does_not_start_is_undone(env: LifecycleEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(_: object) -> None:
        raise ServiceUnavailable("no space")

    agent = await env.create_row()
    monkeypatch.setattr(env.runtime, "start", refuse)
    with pytest.raises(ServiceUnavailable):
        async with env.start.start.open_workspace(agent):
            pass
    assert env.relays.open_now == set()


async def test_a_start_shows_what_it_waits_for_until_it_ends(database: Database, tmp_path: Path) -> None:
    class WaitingRuntime(FakeRuntime):
        async def start(self, spec: ContainerSpec) -> Container:
            assert spec.report_wait is not None
            for reason in ("The node loads the image", "Its files are in /var/lib/kubelet/x"):
                await spec.report_wait(reason)
                shown.append((await env.agents.get(spec.agent_id)).reason)
            return await super().start(spec)

    shown: list[str | None] = []
    async with open_lifecycle_env(database, tmp_path, runtime=WaitingRuntime(tmp_path)) as env:
        agent = await env.create_row()
        assert (await env.run(START, agent.id)).state is OperationState.DONE
        assert shown == ["The node loads the image", "Its files are in [path]"]
        found = await env.agents.get(agent.id)
        assert (found.state, found.reason) == (AgentState.RUNNING, None)
        await env.runtime.delete(agent.id)


async def test_an_agent_over_its_limit_has_a_container_without_a_gateway(
    env: LifecycleEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def find_excess(_: str) -> str:
        return "The agent uses too much"

    agent = await env.create_row()
    monkeypatch.setattr(env.start.disk_guard, "find_excess", find_excess)
    with pytest.raises(DiskLimitReached):
        await env.start.start.start_agent(agent, new_container=False)
    (container,) = await env.runtime.list()
    assert container.delete_only
    assert await env.warden(agent.id).processes() == {}
