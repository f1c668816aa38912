"""Deletion hides an agent at once, removes it soon, and retries until that works."""

import asyncio
from pathlib import Path

import pytest

from roost.agents.lifecycle.workflows.model import DELETE
from roost.agents.registry.errors import AgentNotFound
from roost.core.db import Database
from roost.drivers.runtime.contract import RuntimeFailed
from roost.drivers.runtime.fake import FakeRuntime
from roost.identity.errors import Unauthorised
from roost.work import OperationState
from tests.agents.lifecycle.workflows.lifecycle_env import LifecycleEnv, open_lifecycle_env, until


class FailingRuntime(FakeRuntime):
    """Fails to stop containers `refusals` times."""

    refusals = 0

    async def stop(self, agent_id: str, grace: float = 5.0) -> None:
        if self.refusals > 0:
            self.refusals -= 1
            raise RuntimeFailed("it does not end")
        await super().stop(agent_id, grace)


async def test_delete_removes_everything(env: LifecycleEnv, folder: Path) -> None:
    agent = await env.create()
    await env.warden(agent.id).write("mine.txt", b"x")
    await env.services.delete.delete(agent.id)
    assert await env.containers() == {}
    assert env.relays.open_now == set()
    assert not list(folder.rglob(f"*{agent.id}*"))
    assert await env.host_agents.list() == []


async def test_the_token_dies_and_the_agent_is_hidden_at_once(env: LifecycleEnv) -> None:
    agent = await env.create()
    token = (await env.gateways.read(agent.id)).reveal()
    await env.gateways.verify(token)
    deleting = asyncio.create_task(env.services.delete.delete(agent.id))
    await until(lambda: _hidden(env, agent.id))
    await until(lambda: _refused(env, token))
    await deleting


async def test_concurrent_deletes_succeed_once(env: LifecycleEnv) -> None:
    agent = await env.create()
    results = await asyncio.gather(*(env.services.delete.delete(agent.id) for _ in range(5)), return_exceptions=True)
    assert results.count(None) == 1
    assert {type(result) for result in results if result is not None} == {AgentNotFound}


async def test_a_failed_stop_is_retried(database: Database, folder: Path) -> None:
    runtime = FailingRuntime(folder)
    async with open_lifecycle_env(database, folder, runtime=runtime) as env:
        agent = await env.create()
        runtime.refusals = 2  # one for the delete itself, one for its first try
        await env.services.delete.delete(agent.id)
        assert runtime.refusals == 0
        assert await env.containers() == {}
        assert await env.host_agents.list() == []


async def test_the_operation_is_idempotent(env: LifecycleEnv) -> None:
    agent = await env.create()
    await env.services.delete.delete(agent.id)
    assert (await env.run(DELETE, agent.id)).state is OperationState.DONE


async def test_a_deleted_agent_frees_its_quota(env: LifecycleEnv) -> None:
    for name in ("one", "two"):
        agent = await env.create(name)
        await env.services.delete.delete(agent.id)
    with pytest.raises(AgentNotFound):
        await env.services.delete.delete(agent.id)


async def _hidden(env: LifecycleEnv, agent_id: str) -> bool:
    try:
        await env.agents.get(agent_id)
    except AgentNotFound:
        return True
    return False


async def _refused(env: LifecycleEnv, token: str) -> bool:
    try:
        await env.gateways.verify(token)
    except Unauthorised:
        return True
    return False
