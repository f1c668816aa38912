"""Slots of Git commands."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from roost.agents.workspace.git.errors import TooManyGitRequests
from roost.agents.workspace.git.limiter import GitCommandLimiter


async def test_a_tenant_leaves_slots_to_others() -> None:
    limiter = GitCommandLimiter(total=3, each=2, wait=0.01)
    async with AsyncExitStack() as stack:
        for tenant in ("a", "a", "b"):
            await stack.enter_async_context(limiter.acquire(tenant))
        for tenant in ("a", "b", "c"):
            with pytest.raises(TooManyGitRequests) as caught:
                await stack.enter_async_context(limiter.acquire(tenant))
            assert caught.value.retry_after
    for _ in range(4):
        async with limiter.acquire("a"):
            pass


async def test_a_request_waits_for_a_slot() -> None:
    limiter = GitCommandLimiter(total=1, each=1, wait=30)
    released = asyncio.Event()
    order: list[str] = []

    async def run(name: str) -> None:
        async with limiter.acquire("a"):
            order.append(name)
            await released.wait()

    first = asyncio.create_task(run("first"))
    await asyncio.sleep(0)
    second = asyncio.create_task(run("second"))
    await asyncio.sleep(0)
    assert order == ["first"]
    released.set()
    await asyncio.gather(first, second)
    assert order == ["first", "second"]


async def test_an_error_or_a_timeout_inside_frees_the_slot() -> None:
    limiter = GitCommandLimiter(total=1, each=1, wait=0.01)
    for error in (TimeoutError, RuntimeError):
        with pytest.raises(error):
            async with limiter.acquire("a"):
                raise error
