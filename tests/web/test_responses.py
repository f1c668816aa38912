"""Responses that are made while the request's body arrives."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import nullcontext, suppress

import pytest
from starlette.requests import ClientDisconnect
from starlette.types import Message

from roost.core.problem import NotFound
from roost.web.responses import DuplexResponse

SCOPE = {"type": "http", "headers": [(b"transfer-encoding", b"chunked")]}


class Client:
    """The other end of one request."""

    def __init__(self, *messages: Message) -> None:
        self.messages: asyncio.Queue[Message] = asyncio.Queue()
        for message in messages:
            self.messages.put_nowait(message)
        self.sent: list[Message] = []

    async def send(self, message: Message) -> None:
        self.sent.append(message)

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent)


def part(data: bytes, *, more: bool = True) -> Message:
    return {"type": "http.request", "body": data, "more_body": more}


async def upper(body: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    async for chunk in body:
        yield chunk.upper()


async def test_output_begins_before_the_input_has_ended() -> None:
    client = Client(part(b"a"))
    running = asyncio.create_task(DuplexResponse(upper, "text/x", {"X": "y"})(SCOPE, client.messages.get, client.send))
    async with asyncio.timeout(5):
        while client.body != b"A":
            await asyncio.sleep(0)
        client.messages.put_nowait(part(b"b"))
        client.messages.put_nowait(part(b"", more=False))
        await running
    assert client.body == b"AB"
    start, *_, end = client.sent
    assert (b"x", b"y") in start["headers"]
    assert b"content-length" not in dict(start["headers"])
    assert end == {"type": "http.response.body", "body": b""}


async def test_an_early_problem_is_no_response() -> None:
    async def fail(_body: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
        raise NotFound
        yield b""

    client = Client()
    with pytest.raises(NotFound):
        await DuplexResponse(fail, "text/x")(SCOPE, client.messages.get, client.send)
    assert not client.sent


@pytest.mark.parametrize("has_body", [True, False])
async def test_a_client_that_leaves_closes_the_producer(has_body: bool) -> None:
    closed = asyncio.Event()

    async def endless(body: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
        try:
            async for chunk in body if has_body else upper(body):
                yield chunk
            await asyncio.Event().wait()
        finally:
            closed.set()

    client = Client(part(b"a", more=False), {"type": "http.disconnect"})
    scope = SCOPE if has_body else {**SCOPE, "headers": []}
    is_quiet = nullcontext() if has_body else pytest.raises(ClientDisconnect)  # once the response has begun
    async with asyncio.timeout(5):
        with is_quiet:
            await DuplexResponse(endless, "text/x")(scope, client.messages.get, client.send)
    assert closed.is_set()


async def test_a_client_that_leaves_within_its_body_gets_no_end() -> None:
    client = Client(part(b"a"), {"type": "http.disconnect"})
    await DuplexResponse(upper, "text/x")(SCOPE, client.messages.get, client.send)
    assert client.sent[-1]["more_body"]


async def test_an_error_that_ends_the_response_is_raised_although_the_client_has_left() -> None:
    """A HEAD request ends with the first byte, and its client leaves while the producer is closed."""
    client = Client(part(b"a", more=False))

    async def produce(body: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
        try:
            async for _ in body:
                yield b"first"
        finally:
            client.messages.put_nowait({"type": "http.disconnect"})
            with suppress(asyncio.CancelledError):  # as one that waits for the end of a program
                await asyncio.Event().wait()

    async def send(message: Message) -> None:
        if message["type"] == "http.response.body":
            raise InterruptedError

    with pytest.raises(InterruptedError):
        await DuplexResponse(produce, "text/x")(SCOPE, client.messages.get, send)
