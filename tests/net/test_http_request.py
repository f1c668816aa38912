"""Requests over a stream to a hostile gateway: framing, bounds, silence."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from roost.drivers.runtime.contract import Stream
from roost.net.http_request import HttpResponse, InvalidResponseError, ResponseTooLongError, send_request

HEADERS = {"Authorization": "Bearer secret"}
OK = b"HTTP/1.1 200 OK\r\n"


@asynccontextmanager
async def gateway(answer: bytes, *, closes: bool = True) -> AsyncGenerator[tuple[Stream, list[bytes]]]:
    """Run a gateway that answers every request with these bytes; yield a connection, and what it received."""
    received: list[bytes] = []
    done = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer)
        if not closes:
            await done.wait()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield await asyncio.open_connection("127.0.0.1", port), received
    finally:
        done.set()
        server.close()


async def body(response: HttpResponse) -> bytes:
    content = b""
    while part := await response.read():
        content += part
    return content


@pytest.mark.parametrize(
    "answer",
    [
        OK + b"Content-Length: 5\r\n\r\nhello",
        OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
        OK + b"Connection: close\r\n\r\nhello",
        b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK + b"Content-Length: 5\r\n\r\nhello",
        OK + b"Content-Length: 5\r\n\r\nhelloHTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\nno",
    ],
    ids=["length", "chunked", "until close", "informational", "followed by another"],
)
async def test_each_framing_of_a_body_is_read(answer: bytes) -> None:
    async with gateway(answer) as (stream, received), send_request(stream, "GET /x HTTP/1.1", HEADERS) as response:
        assert response.status == 200
        assert await body(response) == b"hello"
    assert received[0].startswith(b"GET /x HTTP/1.1\r\n")
    assert b"Authorization: Bearer secret\r\n" in received[0]


async def test_a_body_beyond_the_limit_is_refused() -> None:
    answer = OK + b"Connection: close\r\n\r\nhello"
    async with gateway(answer) as (stream, _), send_request(stream, "GET / HTTP/1.1", HEADERS) as response:
        with pytest.raises(ResponseTooLongError):
            await response.read_all(4)


async def test_a_response_without_a_length_that_stays_open_is_read_as_it_comes() -> None:
    answer = OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"
    async with gateway(answer, closes=False) as (stream, _), send_request(stream, "GET / HTTP/1.1", HEADERS) as got:
        assert await got.read() == b"hello"


@pytest.mark.parametrize(
    "answer",
    [
        b"nonsense\r\n\r\n",
        OK + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        OK + b"X: " + b"a" * 70000 + b"\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    ],
    ids=["not HTTP", "two lengths", "long head", "another protocol"],
)
async def test_malformed_responses_are_refused(answer: bytes) -> None:
    async with gateway(answer) as (stream, _):
        with pytest.raises(InvalidResponseError):
            async with send_request(stream, "GET / HTTP/1.1", HEADERS) as response:
                await body(response)


async def test_a_connection_that_ends_without_a_head_is_an_eof() -> None:
    async with gateway(b"") as (stream, _):
        with pytest.raises(EOFError):
            async with send_request(stream, "GET / HTTP/1.1", HEADERS):
                raise AssertionError("there is no head")


async def test_a_head_that_takes_too_long_is_a_timeout() -> None:
    async with gateway(OK, closes=False) as (stream, _):
        with pytest.raises(TimeoutError):
            async with send_request(stream, "GET / HTTP/1.1", HEADERS, head_seconds=0.05):
                raise AssertionError("there is no head")
