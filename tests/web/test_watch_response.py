"""Changes as server-sent events: what is sent of changes, of pauses and of errors before and after the first."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, nullcontext

import pytest
from pydantic import BaseModel

from roost.core.problem import Problem, TooManyRequests
from roost.web import watch_response


class Record(BaseModel):
    value: int


@asynccontextmanager
async def watch(values: Sequence[int], error: Problem | None = None) -> AsyncGenerator[AsyncGenerator[int]]:
    async def changes() -> AsyncGenerator[int]:
        for value in values:
            yield value
        if error:
            raise error

    yield changes()


async def collect(values: Sequence[int], error: Problem | None = None) -> bytes:
    events = watch_response.encode_changes(nullcontext(), watch(values, error), lambda value: Record(value=value))
    return b"".join([event async for event in events])


async def test_each_change_is_an_event() -> None:
    assert await collect([1, 2]) == b'data: {"value":1}\n\ndata: {"value":2}\n\n'


async def test_an_error_after_the_first_event_is_the_last_one() -> None:
    sent = await collect([1], TooManyRequests())
    assert sent == b'data: {"value":1}\n\nevent: error\ndata: {"error": "Too many requests"}\n\n'


async def test_an_error_before_is_raised() -> None:
    with pytest.raises(TooManyRequests):
        await collect([], TooManyRequests())
