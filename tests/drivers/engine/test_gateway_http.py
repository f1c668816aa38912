import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from roost.core.sensitive import Sensitive
from roost.drivers.engine.contract import Dial, EngineFailed
from roost.drivers.engine.gateway_http import is_answering, send_json, stream_events
from roost.drivers.runtime.contract import Stream
from roost.warden_client.errors import ContainerNotRunning

TOKEN = Sensitive("t")


@asynccontextmanager
async def serving(*parts: bytes) -> AsyncIterator[tuple[Dial, list[bytes]]]:
    """A server that reads one request, sends the parts and closes."""
    requests: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await reader.readuntil(b"\r\n\r\n"))
        with contextlib.suppress(ConnectionError):  # the client can have closed the connection
            for part in parts:
                writer.write(part)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]

    async def dial(_port: int) -> Stream:
        return await asyncio.open_connection("127.0.0.1", port)

    async with server:
        yield dial, requests


async def test_a_fragmented_answer_is_assembled() -> None:
    async with serving(b"HTTP/1.0 20", b"0 OK\r\nA: b\r\n\r", b'\n{"a"', b": 1}") as (dial, requests):
        assert await send_json(dial, 1, "GET /x", TOKEN) == (200, {"a": 1})
        head = b"GET /x HTTP/1.0\r\nHost: 127.0.0.1\r\nAuthorization: Bearer t\r\n"
        assert requests == [head + b"Content-Type: application/json\r\nContent-Length: 0\r\n\r\n"]


@pytest.mark.parametrize("answer", [b"", b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n", b"HTTP/1.1 200 OK\r\n"])
async def test_an_answer_that_is_not_http_is_an_engine_failure(answer: bytes) -> None:
    async with serving(answer) as (dial, _):
        with pytest.raises(EngineFailed):
            await send_json(dial, 1, "GET /", TOKEN)
        assert await is_answering(dial, 1, "/") is False


async def test_an_endless_answer_is_cut() -> None:
    async with serving(b"HTTP/1.0 200 OK\r\n\r\n", *[bytes(65536)] * 40) as (dial, _):
        with pytest.raises(EngineFailed, match="too long"):
            await send_json(dial, 1, "GET /", TOKEN)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"HTTP/1.1 401 No\r\n\r\n{}", "answered 401"),
        (b"HTTP/1.1 200 OK\r\n\r\n[]", "answered 200"),
        (b"HTTP/1.1 200 OK\r\n\r\n<html>", "not JSON"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 100_000, "not JSON"),
    ],
)
async def test_only_a_json_object_with_an_expected_status_is_accepted(answer: bytes, message: str) -> None:
    async with serving(answer) as (dial, _):
        with pytest.raises(EngineFailed, match=message):
            await send_json(dial, 1, "GET /", TOKEN)


async def test_an_expected_status_is_returned_with_the_body() -> None:
    async with serving(b'HTTP/1.1 404 No\r\n\r\n{"error": "x"}') as (dial, _):
        assert await send_json(dial, 1, "POST /x", TOKEN, {}, expected=(200, 404)) == (404, {"error": "x"})


async def test_a_gateway_that_does_not_listen_is_not_ready() -> None:
    async def gone(_port: int) -> Stream:
        raise ContainerNotRunning

    assert await is_answering(gone, 1, "/") is False


async def test_a_silent_gateway_is_not_ready() -> None:
    left, right = await silent_pair()

    async def dial(_port: int) -> Stream:
        return left

    assert await is_answering(dial, 1, "/") is False
    right[1].close()


async def silent_pair() -> tuple[Stream, Stream]:
    one, two = socket.socketpair()
    return await asyncio.open_connection(sock=one), await asyncio.open_connection(sock=two)


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
async def test_a_stream_of_events(end: str) -> None:
    text = f"\ufeffevent: x{end}data: a\u2028b{end}data: c{end}{end}: quiet{end}{end}data: d{end}{end}"
    async with serving(b"HTTP/1.0 200 OK\r\n\r\n", *(bytes([byte]) for byte in text.encode())) as (dial, _):
        events = [tuple(event) async for event in stream_events(dial, 1, "POST /x", TOKEN, {}, {})]
    assert events == [("x", "a\u2028b\nc"), ("message", "d")]


async def test_an_endless_event_is_cut() -> None:
    async with serving(b"HTTP/1.0 200 OK\r\n\r\n", *[b"data: " + bytes(65536)] * 40) as (dial, _):
        with pytest.raises(EngineFailed, match="too long"):
            await anext(stream_events(dial, 1, "POST /x", TOKEN, {}, {}))
