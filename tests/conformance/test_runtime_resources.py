"""The contract of a runtime: memory and priority of its containers."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conformance.runtimes import AGENT, RUNTIME_CASES, Make, RuntimeEnv, open_runtime_env


@pytest.fixture(params=RUNTIME_CASES)
async def env(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[RuntimeEnv]:
    make: Make = request.param
    async with open_runtime_env(make, tmp_path) as found:
        yield found


async def test_the_memory_of_a_container_is_measured(env: RuntimeEnv) -> None:
    container = await env.container()
    before = await env.runtime.read_memory([AGENT, "unknown"])
    if not before:
        pytest.skip("no control group for memory is delegated to this process")
    assert before.keys() == {AGENT}
    hold = "import time; held = b'x' * 50_000_000; time.sleep(60)"
    await container.exec(["sh", "-c", f'setsid python3 -c "{hold}" > /dev/null 2>&1 < /dev/null &'])
    async with asyncio.timeout(20):
        while (await env.runtime.read_memory([AGENT]))[AGENT] < before[AGENT] + 50_000_000:
            await asyncio.sleep(0.02)
    await env.runtime.stop(AGENT, grace=0)
    assert await env.runtime.read_memory([AGENT]) == {}


async def test_priorities_are_hints_that_never_fail(env: RuntimeEnv) -> None:
    env.runtime.prefer("nobody")
    await env.container()
    env.runtime.prefer(AGENT)
    assert env.runtime.start_slots() >= 1
