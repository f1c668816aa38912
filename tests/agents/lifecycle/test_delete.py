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
from tests.agents.lifecycle.house import House, house, until


class Stubborn(FakeRuntime):
    """Does not end a container before it is asked often enough."""

    refusals = 0

    async def stop(self, agent_id: str, grace: float = 5.0) -> None:
        if self.refusals > 0:
            self.refusals -= 1
            raise RuntimeFailed("it does not end")
        await super().stop(agent_id, grace)


async def test_nothing_is_left(home: House, folder: Path) -> None:
    agent = await home.create()
    await home.warden(agent.id).write("mine.txt", b"x")
    await home.services.delete.delete(agent.id)
    assert await home.containers() == {}
    assert home.relays.open_now == set()
    assert not list(folder.rglob(f"*{agent.id}*"))
    assert await home.roster.list_all() == []


async def test_the_token_dies_and_the_agent_is_hidden_at_once(home: House) -> None:
    agent = await home.create()
    token = (await home.gateways.read(agent.id)).reveal()
    await home.gateways.verify(token)
    deleting = asyncio.create_task(home.services.delete.delete(agent.id))
    await until(lambda: _hidden(home, agent.id))
    await until(lambda: _refused(home, token))
    await deleting


async def test_twice_is_once(home: House) -> None:
    agent = await home.create()
    ends = await asyncio.gather(*(home.services.delete.delete(agent.id) for _ in range(5)), return_exceptions=True)
    assert ends.count(None) == 1
    assert {type(end) for end in ends if end is not None} == {AgentNotFound}


async def test_what_does_not_end_is_tried_again(database: Database, folder: Path) -> None:
    runtime = Stubborn(folder)
    async with house(database, folder, runtime=runtime) as home:
        agent = await home.create()
        runtime.refusals = 2  # one for the delete itself, one for its first try
        await home.services.delete.delete(agent.id)
        assert runtime.refusals == 0
        assert await home.containers() == {}
        assert await home.roster.list_all() == []


async def test_the_operation_can_be_done_twice(home: House) -> None:
    agent = await home.create()
    await home.services.delete.delete(agent.id)
    assert (await home.run(DELETE, agent.id)).state is OperationState.DONE


async def test_a_place_becomes_free(home: House) -> None:
    for name in ("one", "two"):
        agent = await home.create(name)
        await home.services.delete.delete(agent.id)
    with pytest.raises(AgentNotFound):
        await home.services.delete.delete(agent.id)


async def _hidden(home: House, agent_id: str) -> bool:
    try:
        await home.roster.get(agent_id)
    except AgentNotFound:
        return True
    return False


async def _refused(home: House, token: str) -> bool:
    try:
        await home.gateways.verify(token)
    except Unauthorised:
        return True
    return False
