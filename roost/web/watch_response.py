"""Changes as server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html)."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, aclosing
from typing import TypeVar

from pydantic import BaseModel

from roost.core.problem import Problem
from roost.web.duplex_response import DuplexResponse

EVENT_CONTENT = {"text/event-stream": {"schema": {"description": "Server-sent events with JSON objects as data."}}}
KEEPALIVE_SECONDS = 15.0
_KEEPALIVE = b": watching\n\n"
_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}

T = TypeVar("T")
Watch = AbstractAsyncContextManager[AsyncGenerator[T]]


def watch_response(
    admitted: AbstractAsyncContextManager[object], watch: Watch[T], to_record: Callable[[T], BaseModel]
) -> DuplexResponse:
    """Return a response that streams a record of each change, until the credential becomes invalid."""
    return DuplexResponse(lambda _: encode_changes(admitted, watch, to_record), "text/event-stream", _HEADERS)


async def encode_changes(
    admitted: AbstractAsyncContextManager[object], watch: Watch[T], to_record: Callable[[T], BaseModel]
) -> AsyncGenerator[bytes]:
    """Yield events until `admitted` or the watch ends; an event `error` tells why. Raises a Problem before the first.

    A comment after each 15 s without an event keeps proxies from closing the connection.
    """
    is_open = False
    try:
        async with admitted, watch as changes, aclosing(_with_pauses(changes)) as items:
            async for item in items:
                is_open = True
                yield _KEEPALIVE if item is None else _format_event(to_record(item))
    except Problem as problem:
        if not is_open:
            raise
        yield f"event: error\ndata: {json.dumps({'error': problem.message})}\n\n".encode()


async def _with_pauses(changes: AsyncGenerator[T]) -> AsyncGenerator[T | None]:
    """Yield changes, and None after each pause."""
    step: asyncio.Future[T | None] | None = None
    try:
        while True:
            step = step or asyncio.ensure_future(anext(changes, None))
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


def _format_event(record: BaseModel) -> bytes:
    return f"data: {record.model_dump_json(by_alias=True)}\n\n".encode()
