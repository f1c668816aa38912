"""Teardown: hidden at once, gone soon, and whatever does not work is tried until it does."""

import asyncio
from pathlib import Path

import pytest

from roost.agents.lifecycle.model import DELETE
from roost.agents.registry.errors import AgentNotFound
from roost.core.db import Database
from roost.drivers.runtime.contract import RuntimeFailed
from roost.drivers.runtime.fake import FakeRuntime
from roost.identity.errors import Unauthorised
from roost.work import OperationState
from tests.agents.lifecycle.lifecycle_env import LifecycleEnv, open_lifecycle_env, until


class Stubborn(FakeRuntime):
    """Does not end a container before it is asked often enough."""

    refusals = 0

    async def stop(self, agent_id: str, grace: float = 5.0) -> None:
        if self.refusals > 0:
            self.refusals -= 1
            raise RuntimeFailed("it does not end")
        await super().stop(agent_id, grace)


async def test_nothing_is_left(env: LifecycleEnv, folder: Path) -> None:
    agent = await env.create()
    await env.warden(agent.id).write("mine.txt", b"x")
    await env.services.delete.delete(agent.id)
    assert await env.containers() == {}
    assert env.relays.open_now == set()
    assert not list(folder.rglob(f"*{agent.id}*"))
    assert await env.roster.list_all() == []


async def test_the_token_dies_and_the_agent_is_hidden_at_once(env: LifecycleEnv) -> None:
    agent = await env.create()
    token = (await env.gateways.read(agent.id)).reveal()
    await env.gateways.verify(token)
    deleting = asyncio.create_task(env.services.delete.delete(agent.id))
    await until(lambda: _hidden(env, agent.id))
    await until(lambda: _refused(env, token))
    await deleting


async def test_twice_is_once(env: LifecycleEnv) -> None:
    agent = await env.create()
    ends = await asyncio.gather(*(env.services.delete.delete(agent.id) for _ in range(5)), return_exceptions=True)
    assert ends.count(None) == 1
    assert {type(end) for end in ends if end is not None} == {AgentNotFound}


async def test_what_does_not_end_is_tried_again(database: Database, folder: Path) -> None:
    runtime = Stubborn(folder)
    async with open_lifecycle_env(database, folder, runtime=runtime) as env:
        agent = await env.create()
        runtime.refusals = 2  # one for the delete itself, one for its first try
        await env.services.delete.delete(agent.id)
        assert runtime.refusals == 0
        assert await env.containers() == {}
        assert await env.roster.list_all() == []


async def test_the_operation_can_be_done_twice(env: LifecycleEnv) -> None:
    agent = await env.create()
    await env.services.delete.delete(agent.id)
    assert (await env.run(DELETE, agent.id)).state is OperationState.DONE


async def test_a_place_becomes_free(env: LifecycleEnv) -> None:
    for name in ("one", "two"):
        agent = await env.create(name)
        await env.services.delete.delete(agent.id)
    with pytest.raises(AgentNotFound):
        await env.services.delete.delete(agent.id)


async def _hidden(env: LifecycleEnv, agent_id: str) -> bool:
    try:
        await env.roster.get(agent_id)
    except AgentNotFound:
        return True
    return False


async def _refused(env: LifecycleEnv, token: str) -> bool:
    try:
        await env.gateways.verify(token)
    except Unauthorised:
        return True
    return False
