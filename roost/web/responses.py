"""Responses that frameworks do not have: in both directions at once, of events, of long lists; and names of files."""

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sized
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext, suppress
from typing import Any, TypeVar
from urllib.parse import quote

from fastapi import Response
from pydantic import BaseModel
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from roost.core.machine.threads import run_in_daemon_thread
from roost.core.problem import Problem
from roost.web.schemas import ErrorBody

Item = TypeVar("Item")
Produce = Callable[[AsyncIterator[bytes]], AsyncGenerator[bytes]]
"""Returns the bytes of a response to a body. A Problem before the first byte becomes an error response."""
KEEPALIVE_SECONDS = 15.0
_KEEPALIVE = b": open\n\n"
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_SHORT_LIST = 50
"""Items that the event loop encodes itself, faster than a thread would start."""
_encoding = threading.Lock()
"""Held while a long list is encoded: of several such threads, each makes the event loop wait for the interpreter."""
_NAME_LIMIT = 255


class DuplexResponse(Response):
    """Response in both directions at once, in bounded memory; when the client leaves, the producer is closed."""

    def __init__(self, produce: Produce, media_type: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(None, 200, headers, media_type)
        del self.headers["content-length"]
        self._produce = produce
        self._is_started = False  # then an error can no longer be answered

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_body = any(name in {b"content-length", b"transfer-encoding"} for name, _ in scope["headers"])
        body = _RequestBody(receive, has_body=has_body)
        sending = asyncio.create_task(self._send_output(body, send))
        leaving = asyncio.create_task(body.wait_for_disconnect())
        try:
            await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
            with suppress(ClientDisconnect) if self._is_started else nullcontext():
                if not sending.done():
                    sending.cancel()
                    await asyncio.wait((sending,))
                    if sending.cancelled():
                        raise ClientDisconnect
                sending.result()
        finally:
            sending.cancel()
            leaving.cancel()
            await asyncio.wait((sending, leaving))

    async def _send_output(self, body: "_RequestBody", send: Send) -> None:
        async with aclosing(self._produce(body)) as output:
            first = await anext(output, b"")
            self._is_started = True
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            await send({"type": "http.response.body", "body": first, "more_body": True})
            async for chunk in output:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


class _RequestBody(AsyncIterator[bytes]):
    """The chunks of a body; it fails when the client leaves within it."""

    def __init__(self, receive: Receive, *, has_body: bool) -> None:
        self._receive = receive
        self._has_ended = asyncio.Event()
        if not has_body:
            self._has_ended.set()

    async def __anext__(self) -> bytes:
        while not self._has_ended.is_set():
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            if not message.get("more_body"):
                self._has_ended.set()
            if chunk := message.get("body"):
                return chunk
        raise StopAsyncIteration

    async def wait_for_disconnect(self) -> None:
        """Return when the client has left after the end of its body; before that, reading the body fails."""
        await self._has_ended.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass


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


async def render_list(items: Sized, build: Callable[[], BaseModel]) -> Response:
    """Return the JSON of the model that `build` makes of `items`, as the framework would encode it."""

    def encode() -> str:
        return build().model_dump_json(by_alias=True)

    def encode_alone() -> str:
        with _encoding:
            return encode()

    body = encode() if len(items) <= _SHORT_LIST else await run_in_daemon_thread(encode_alone)
    return Response(body, media_type="application/json")


def content_disposition(kind: str, name: str) -> str:
    """Return `inline` or `attachment` with a file name that is safe for all clients (RFC 6266, 4.3, appendix D)."""
    name = "".join(char for char in name[:_NAME_LIMIT] if char.isprintable() and char not in "/\\")
    if not name:
        return kind
    plain = "".join(char if char.isascii() and char not in '"%' else "_" for char in name)
    extended = "" if plain == name else f"; filename*=UTF-8''{quote(name.encode('utf-8', 'replace'), safe='')}"
    return f'{kind}; filename="{plain}"{extended}'
