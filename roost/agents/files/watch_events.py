"""Changes of a workspace as server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html)."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, aclosing

from roost.agents.files.schemas import ChangedFilesRecord
from roost.core.problem import Problem
from roost.drivers.runtime.warden_tree import ChangedPaths

KEEPALIVE_SECONDS = 15.0
_KEEPALIVE = b": watching\n\n"


async def encode_changes(
    admitted: AbstractAsyncContextManager[object],
    watch: AbstractAsyncContextManager[AsyncGenerator[ChangedPaths]],
) -> AsyncGenerator[bytes]:
    """Yield events until `admitted` or the watch ends; an event `error` tells why. Raises a Problem before the first.

    A comment after each 15 s without an event keeps proxies from closing the connection.
    """
    is_open = False
    try:
        async with admitted, watch as changes, aclosing(_with_pauses(changes)) as items:
            async for item in items:
                is_open = True
                yield _KEEPALIVE if item is None else _format_event(item)
    except Problem as problem:
        if not is_open:
            raise
        yield f"event: error\ndata: {json.dumps({'error': problem.message})}\n\n".encode()


async def _with_pauses(changes: AsyncGenerator[ChangedPaths]) -> AsyncGenerator[ChangedPaths | None]:
    """Yield changes, and None after each pause."""
    step: asyncio.Future[ChangedPaths | None] | None = None
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


def _format_event(changes: ChangedPaths) -> bytes:
    return f"data: {ChangedFilesRecord.from_changes(changes).model_dump_json(by_alias=True)}\n\n".encode()
