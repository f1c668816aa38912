"""Request bodies of Git, which may be compressed."""

import asyncio
import gzip
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from roost.agents.workspace.git.request_limits import (
    GitBodyTooLarge,
    GitCommandLimiter,
    InvalidGitBody,
    TooManyGitRequests,
    read_body,
)

MIB = 1024**2


async def chunked(data: bytes, size: int = 1000) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


async def read(data: bytes, *, is_compressed: bool = True, limit: int = MIB) -> bytes:
    return b"".join([chunk async for chunk in read_body(chunked(data), is_compressed=is_compressed, limit=limit)])


async def test_bodies_arrive_whole_as_sent_or_decompressed() -> None:
    body = bytes(range(256)) * 1000
    assert await read(body, is_compressed=False) == body
    assert await read(gzip.compress(body)) == body
    assert await read(b"", is_compressed=False) == b""


async def test_the_limit_holds_for_what_is_decoded() -> None:
    assert len(await read(bytes(MIB), is_compressed=False)) == MIB
    for is_compressed in (False, True):
        data = bytes(MIB + 1)
        with pytest.raises(GitBodyTooLarge):
            await read(gzip.compress(data) if is_compressed else data, is_compressed=is_compressed)


async def test_a_bomb_is_decoded_in_small_steps() -> None:
    bomb = gzip.compress(bytes(64 * MIB))
    tracemalloc.start()
    try:
        size = 0
        async for chunk in read_body(chunked(bomb, len(bomb)), is_compressed=True, limit=128 * MIB):
            size += len(chunk)
        assert tracemalloc.get_traced_memory()[1] < 4 * MIB
    finally:
        tracemalloc.stop()
    assert size == 64 * MIB


@pytest.mark.parametrize("cut", [slice(0), slice(5), slice(-1)])
async def test_truncated_bodies_are_refused(cut: slice) -> None:
    with pytest.raises(InvalidGitBody):
        await read(gzip.compress(b"0000")[cut])


async def test_other_bytes_are_refused() -> None:
    for body in (b"garbage", gzip.compress(b"0000") + b"x", gzip.compress(b"0000")[:-1] + b"x"):
        with pytest.raises(InvalidGitBody):
            await read(body)


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
