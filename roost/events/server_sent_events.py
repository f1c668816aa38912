"""Events as server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html)."""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager

from roost.core.problem import Problem
from roost.events.model import Event, EventType
from roost.events.schemas import encode_event


async def encode_stream(opened: AbstractAsyncContextManager[AsyncIterator[Event]]) -> AsyncGenerator[bytes]:
    """Yield events until `opened` ends; an event `error` tells why. Raises a Problem before the first."""
    is_open = False
    try:
        async with opened as events:
            async for event in events:
                is_open = True
                yield format_event(event)
    except Problem as problem:
        if not is_open:
            raise
        yield f"event: error\ndata: {json.dumps({'error': problem.message})}\n\n".encode()


def format_event(event: Event) -> bytes:
    """Format an event. A heartbeat has no data: clients only note its id, from which they resume."""
    if event.type is EventType.HEARTBEAT:
        return f"id: {event.number}\n: heartbeat\n\n".encode()
    return f"id: {event.number}\nevent: {event.type}\ndata: {encode_event(event)}\n\n".encode()
