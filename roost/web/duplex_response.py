"""Responses that are made from the request's body while it still arrives."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, nullcontext, suppress

from fastapi import Response
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

Produce = Callable[[AsyncIterator[bytes]], AsyncGenerator[bytes]]
"""Returns the bytes of a response to a body. A Problem before the first byte becomes an error response."""


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
