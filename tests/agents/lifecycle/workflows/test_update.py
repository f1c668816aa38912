"""Update to a working version, and rollback from a broken one, also when the server is interrupted."""

import asyncio
from pathlib import Path

import pytest
import sqlalchemy as sa

from roost.agents.lifecycle.versions.model import InvalidEngineVersion
from roost.agents.lifecycle.workflows.model import UPDATE, UpdateResult
from roost.agents.registry.errors import AgentNotFound
from roost.agents.registry.model import Agent, AgentState
from roost.core.db import Database
from roost.core.problem import Problem
from roost.drivers.engine.contract import EngineInstallFailed
from roost.drivers.engine.fake.driver import BROKEN
from roost.work import OperationState
from roost.work.store import operations
from tests.agents.lifecycle.workflows.lifecycle_env import LifecycleEnv, open_lifecycle_env, until

MEMORY = ".roost/fake/memory"


async def with_memory(env: LifecycleEnv) -> Agent:
    agent = await env.create()
    await env.warden(agent.id).write(MEMORY, b"remembered", root="home")
    return agent


async def memory(env: LifecycleEnv, agent: Agent) -> bytes:
    return await env.warden(agent.id).read(MEMORY, root="home", limit=100)


async def version(env: LifecycleEnv, agent: Agent) -> str:
    """Return the version that the running gateway reports."""
    token = await env.agents.get_internal_token(agent.id)
    return await env.engine.health(env.runtimes.get_warden(agent.id).dial, token)


@pytest.mark.parametrize("tag", [None, "latest", "1.1.0"])
async def test_update_to_the_newest_version(env: LifecycleEnv, tag: str | None) -> None:
    agent = await with_memory(env)
    updated = await env.services.update(agent.id, tag)
    assert updated == UpdateResult(True, "1.0.0", "1.1.0", "Updated from 1.0.0 to 1.1.0")
    after = await env.agents.get(agent.id)
    assert (after.state, after.engine_version) == (AgentState.RUNNING, "1.1.0")
    assert await version(env, agent) == "1.1.0"
    assert await memory(env, agent) == b"remembered"


async def test_a_second_update_changes_nothing(env: LifecycleEnv) -> None:
    agent = await env.create()
    await env.services.update(agent.id)
    gateway = await env.gateway_pid(agent)
    assert await env.services.update(agent.id) == UpdateResult(True, "1.1.0", "1.1.0", "Already at 1.1.0")
    assert await env.gateway_pid(agent) == gateway


async def test_a_broken_version_is_rolled_back_with_its_state(env: LifecycleEnv) -> None:
    agent = await with_memory(env)
    updated = await env.services.update(agent.id, BROKEN)
    assert (updated.success, updated.previous_version, updated.new_version) == (False, "1.0.0", "1.0.0")
    assert "exited with code 3" in updated.output
    after = await env.agents.get(agent.id)
    assert (after.state, after.engine_version, after.reason) == (AgentState.RUNNING, "1.0.0", None)
    assert await version(env, agent) == "1.0.0"
    assert await memory(env, agent) == b"remembered"


async def test_only_one_state_backup_is_kept(env: LifecycleEnv) -> None:
    agent = await with_memory(env)
    for tag in (BROKEN, "1.1.0"):
        await env.services.update(agent.id, tag)
        assert len(await env.warden(agent.id).list(".roost/saved", root="home")) == 1


async def test_an_install_that_fails_leaves_the_gateway_as_it_is(
    env: LifecycleEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise EngineInstallFailed("npm said https://user:password@registry is down")

    agent = await env.create()
    gateway = await env.gateway_pid(agent)
    monkeypatch.setattr(env.engine, "install", broken)
    updated = await env.services.update(agent.id)
    assert (updated.success, updated.new_version) == (False, "1.0.0")
    assert "password" not in updated.output
    assert await env.gateway_pid(agent) == gateway


async def test_a_link_in_place_of_the_backup_is_replaced(env: LifecycleEnv) -> None:
    agent = await with_memory(env)
    made = ["sh", "-c", "cd $HOME/.roost && rm -rf saved && mkfifo fake/pipe && ln -s /proc saved"]
    assert (await env.warden(agent.id).exec(made)).exit_code == 0
    updated = await env.services.update(agent.id, "1.1.0")
    assert updated.success is True  # removes the link, not its target
    assert await memory(env, agent) == b"remembered"


async def test_a_failed_agent_can_be_updated(env: LifecycleEnv) -> None:
    agent = await env.create()
    await env.runtime.stop(agent.id, grace=0)
    assert (await env.services.update(agent.id)).success is True
    assert await version(env, agent) == "1.1.0"


@pytest.mark.parametrize("tag", ["1.2.0", "newest", "../1.1.0"])
async def test_unknown_versions_are_rejected(env: LifecycleEnv, tag: str) -> None:
    agent = await env.create()
    with pytest.raises(InvalidEngineVersion):
        await env.services.update(agent.id, tag)


async def test_concurrent_updates_end_at_that_version(env: LifecycleEnv) -> None:
    agent = await env.create()
    done = await asyncio.gather(*(env.services.update(agent.id) for _ in range(5)))
    assert {update.new_version for update in done} == {"1.1.0"}
    assert await version(env, agent) == "1.1.0"


async def test_a_missing_agent_cannot_be_updated(env: LifecycleEnv) -> None:
    with pytest.raises(AgentNotFound):
        await env.services.update("nobody")
    assert (await env.run(UPDATE, "nobody", {"to": "1.1.0"})).state is OperationState.DONE


async def test_an_agent_that_is_deleted_meanwhile_does_not_come_back(env: LifecycleEnv) -> None:
    agent = await env.create()
    env.engine.becomes_ready = False
    updating = asyncio.create_task(env.services.update(agent.id))
    await until(lambda: _runs_at(env, agent, "1.1.0"))
    await env.services.delete.delete(agent.id)
    with pytest.raises(AgentNotFound):
        await updating
    assert await env.containers() == {}


@pytest.mark.parametrize("holds", [True, False])
async def test_the_next_process_finishes_an_interrupted_update(database: Database, folder: Path, holds: bool) -> None:
    """After a kill during the start of the new version, the next process continues, or rolls back if that fails."""
    async with open_lifecycle_env(database, folder, lease=0.3) as first:
        agent = await with_memory(first)
        first.engine.becomes_ready = False
        updating = asyncio.create_task(first.services.update(agent.id))
        await until(lambda: _runs_at(first, agent, "1.1.0"))
        await first.warden(agent.id).write(MEMORY, b"spoiled", root="home")
        await first.queue.stop(grace=0)
        async with open_lifecycle_env(database, folder) as second:
            second.engine.install("1.1.0", lambda *_: None)
            second.engine.unfit = frozenset() if holds else frozenset({"1.1.0"})
            done = await updating
            assert done.success is holds
            after = await second.agents.get(agent.id)
            assert (after.state, after.engine_version) == (AgentState.RUNNING, done.new_version)
            assert await version(second, agent) == ("1.1.0" if holds else "1.0.0")
            assert await memory(second, agent) == (b"spoiled" if holds else b"remembered")
            assert len(await second.containers()) == 1


async def test_the_next_process_finishes_an_interrupted_rollback(database: Database, folder: Path) -> None:
    async with open_lifecycle_env(database, folder, lease=0.3) as first:
        agent = await with_memory(first)
        first.engine.becomes_ready = False
        updating = asyncio.create_task(first.services.update(agent.id, BROKEN))
        await until(lambda: _returning(first))
        await until(lambda: _runs_at(first, agent, "1.0.0"))
        await first.warden(agent.id).write(MEMORY, b"spoiled", root="home")
        await first.queue.stop(grace=0)
        async with open_lifecycle_env(database, folder) as second:
            done = await updating
            assert (done.success, done.new_version) == (False, "1.0.0")
            assert await version(second, agent) == "1.0.0"
            assert await memory(second, agent) == b"remembered"


async def test_a_failed_rollback_leaves_a_failed_agent(env: LifecycleEnv) -> None:
    agent = await env.create()
    env.engine.install(BROKEN, lambda *_: None)
    done = asyncio.create_task(env.run(UPDATE, agent.id, {"to": BROKEN}))
    env.engine.unfit = frozenset({"1.0.0"})
    assert (await done).state is OperationState.FAILED
    failed = await env.agents.get(agent.id)
    assert (failed.state, failed.engine_version) == (AgentState.FAILED, "1.0.0")
    assert "did not work" in (failed.reason or "")
    assert "failed too" in (failed.reason or "")


async def _runs_at(env: LifecycleEnv, agent: Agent, wanted: str) -> bool:
    """Return whether the agent's gateway answers at that version, even if the server does not know it yet."""
    if (await env.agents.get(agent.id)).engine_version != wanted:
        return False
    try:
        return await version(env, agent) == wanted
    except Problem:  # not yet
        return False


async def _returning(env: LifecycleEnv) -> bool:
    steps = await env.db.read(lambda c: c.execute(sa.select(operations.c.payload)).scalars().all())
    return any(isinstance(step, dict) and step.get("phase") == "return" for step in steps)
