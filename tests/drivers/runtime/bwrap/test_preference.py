"""A container that a request was sent to comes before other containers for some seconds."""

import asyncio
from pathlib import Path

import pytest

from roost.core.machine import process_priority
from roost.drivers.runtime.bwrap.driver import PREFERRED_WEIGHT, BwrapRuntime, PreferredContainers
from tests.conformance.containers import RunningContainer, Start
from tests.drivers.runtime.bwrap.priorities import weight_of, weights


@weights
@pytest.mark.container
async def test_a_container_is_preferred_while_requests_come(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    container: RunningContainer = await start()
    name = container.runtime._starter.group_name("one")
    assert weight_of(name) == 1
    preferred = PreferredContainers(container.runtime._starter.group_name, seconds=0.05)
    preferred.add("one")
    preferred.add("one")
    assert weight_of(name) == PREFERRED_WEIGHT
    async with asyncio.timeout(10):
        while weight_of(name) != 1:
            await asyncio.sleep(0.01)
    preferred.add("one")
    assert weight_of(name) == PREFERRED_WEIGHT
    preferred.discard("one")
    monkeypatch.setattr(process_priority, "raise_own_priority", lambda: None)  # the tests keep theirs
    container.runtime.take_priority()  # as the next server does after a crash
    assert weight_of(name) == 1


@weights
@pytest.mark.container
async def test_a_new_container_of_a_preferred_agent_is_preferred_again(start: Start) -> None:
    container: RunningContainer = await start()
    runtime = container.runtime
    runtime.prefer("one")
    await runtime.stop("one", grace=0)
    await start()
    assert weight_of(runtime._starter.group_name("one")) == 1
    runtime.prefer("one")
    assert weight_of(runtime._starter.group_name("one")) == PREFERRED_WEIGHT


async def test_preferring_an_agent_without_a_container_does_nothing(tmp_path: Path) -> None:
    BwrapRuntime(tmp_path).prefer("nobody")
