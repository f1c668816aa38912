"""Server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html) of streams that can be quiet."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Any, TypeVar

from pydantic import BaseModel

from roost.core.problem import Problem
from roost.web.duplex_response import DuplexResponse
from roost.web.schemas import ErrorBody

Item = TypeVar("Item")

KEEPALIVE_SECONDS = 15.0
_KEEPALIVE = b": open\n\n"
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


def describe_events(text: str = "Server-sent events with JSON objects as data.") -> dict[str, Any]:
    """Return the `content` of a response for the description of the API."""
    return {"text/event-stream": {"schema": {"description": text}}}


def event_response(
    admitted: AbstractAsyncContextManager[object],
    source: AbstractAsyncContextManager[AsyncGenerator[Item]],
    format_item: Callable[[Item], bytes],
) -> DuplexResponse:
    """Return a response that streams events until the credential becomes invalid, as `encode_events` does."""
    return stream_response(encode_events(admitted, source, format_item))


def stream_response(events: AsyncGenerator[bytes]) -> DuplexResponse:
    """Return a response of encoded events, which no cache and no proxy keeps back."""
    return DuplexResponse(lambda _: events, "text/event-stream", _HEADERS)


async def encode_events(
    admitted: AbstractAsyncContextManager[object],
    source: AbstractAsyncContextManager[AsyncGenerator[Item]],
    format_item: Callable[[Item], bytes],
) -> AsyncGenerator[bytes]:
    """Yield events until `admitted` or the source ends; an event `error` tells why. Raises a Problem before the first.

    A comment after each 15 s without an event keeps proxies from closing the connection.
    """
    is_open = False
    try:
        async with admitted, source as found, aclosing(_with_pauses(found)) as items:
            async for item in items:
                is_open = True
                yield _KEEPALIVE if item is None else format_item(item)
    except Problem as problem:
        if not is_open:
            raise
        yield format_event(ErrorBody(error=problem.message), "error")


def format_event(data: BaseModel, name: str | None = None) -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {data.model_dump_json(by_alias=True)}\n\n".encode()


async def _with_pauses(source: AsyncGenerator[Item]) -> AsyncGenerator[Item | None]:
    """Yield items, and None after each pause."""
    step: asyncio.Future[Item | None] | None = None
    try:
        while True:
            step = step or asyncio.ensure_future(anext(source, None))
            if not (await asyncio.wait({step}, timeout=KEEPALIVE_SECONDS))[0]:
                yield None
                continue
            if (item := step.result()) is None:
                return
            step = None
            yield item
    finally:
        if step is not None:
            step.cancel()
            await asyncio.gather(step, return_exceptions=True)
