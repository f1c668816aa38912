"""The operation behind every start: from whatever state, as often as it is asked, to a running agent or a reason."""

import asyncio
from pathlib import Path

import pytest

from roost.agents.lifecycle.model import FRESH_CONTAINER, START
from roost.agents.registry.model import AgentState
from roost.core.db import Database
from roost.work import OperationState
from tests.agents.lifecycle.house import House, house, until


async def test_from_a_row_to_a_running_agent(home: House) -> None:
    agent = await home.admitted()
    assert (await home.run(START, agent.id)).state is OperationState.DONE
    assert (await home.roster.get(agent.id)).state is AgentState.RUNNING
    assert await home.services.starter.is_up(agent)


async def test_again_is_a_new_gateway_in_the_same_box(home: House) -> None:
    agent = await home.create()
    container, gateway = await home.containers(), await home.gateway_pid(agent)
    await home.run(START, agent.id)
    assert await home.containers() == container
    assert await home.gateway_pid(agent) not in {gateway, None}


async def test_a_new_box_keeps_the_files(home: House) -> None:
    agent = await home.create()
    container = await home.containers()
    await home.warden(agent.id).write("kept.txt", b"kept")
    await home.run(START, agent.id, FRESH_CONTAINER)
    assert (await home.containers())[agent.id] != container[agent.id]
    assert await home.warden(agent.id).read("kept.txt", limit=100) == b"kept"


async def test_an_agent_that_is_gone_is_nothing_to_do(home: House) -> None:
    assert (await home.run(START, "nobody")).state is OperationState.DONE
    assert await home.containers() == {}


async def test_a_missing_engine_is_the_reason(home: House) -> None:
    agent = await home.admitted()
    home.engine.remove("1.0.0")
    assert (await home.run(START, agent.id)).state is OperationState.FAILED
    failed = await home.roster.get(agent.id)
    assert (failed.state, failed.reason) == (AgentState.FAILED, "fake 1.0.0 is not installed")


async def test_what_nobody_expected_shows_nothing_of_the_inside(home: House) -> None:
    agent = await home.admitted()
    home.relays.broken.add(agent.id)
    assert (await home.run(START, agent.id)).state is OperationState.FAILED
    assert (await home.roster.get(agent.id)).reason == "Internal error"
    home.relays.broken.clear()
    assert (await home.run(START, agent.id)).state is OperationState.DONE
    assert (await home.roster.get(agent.id)).reason is None


async def test_an_agent_that_is_deleted_meanwhile_does_not_come_back(home: House) -> None:
    home.engine.let = False
    agent = await home.admitted()
    starting = asyncio.create_task(home.run(START, agent.id))
    await until(lambda: _has_gateway(home, agent.id))
    await home.services.delete.delete(agent.id)
    assert (await starting).state is OperationState.FAILED
    assert await home.containers() == {}
    assert await home.roster.list_all() == []


@pytest.mark.parametrize("clean", [True, False], ids=["given back", "taken over"])
async def test_a_start_that_is_cut_off_is_finished_by_the_next_process(
    database: Database, folder: Path, clean: bool
) -> None:
    """Whether the first gave its work back or lives on as a zombie: the second finishes, the first changes nothing."""
    async with house(database, folder, lease=1.5) as first:
        first.engine.let = False
        agent = await first.admitted()
        cut_off = asyncio.create_task(first.run(START, agent.id))
        await until(lambda: _has_gateway(first, agent.id))
        if clean:
            await first.queue.stop(grace=0)
        async with house(database, folder) as second:
            done = await cut_off
            assert (done.state, done.attempts) == (OperationState.DONE, 2)
            assert (await second.roster.get(agent.id)).state is AgentState.RUNNING
            assert await second.services.starter.is_up(agent)
            assert len(await second.containers()) == 1


async def _has_gateway(home: House, agent_id: str) -> bool:
    if agent_id not in await home.containers():
        return False
    return "gateway" in await home.warden(agent_id).processes()
