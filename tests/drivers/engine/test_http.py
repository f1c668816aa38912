import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from roost.drivers.engine import http
from roost.drivers.engine.contract import Dial, EngineFailed
from roost.drivers.runtime.contract import ContainerNotRunning, Stream


@asynccontextmanager
async def serving(*parts: bytes) -> AsyncIterator[tuple[Dial, list[bytes]]]:
    """A server that reads one request, sends the parts and closes."""
    requests: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await reader.readuntil(b"\r\n\r\n"))
        with contextlib.suppress(ConnectionError):  # the client may have had enough
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


async def test_an_answer_in_pieces_is_put_together() -> None:
    async with serving(b"HTTP/1.0 20", b"0 OK\r\nA: b\r\n\r", b'\n{"a"', b": 1}") as (dial, requests):
        assert await http.get(dial, 1, "/x", {"A": "b"}) == http.HttpResponse(200, b'{"a": 1}')
        assert requests == [b"GET /x HTTP/1.0\r\nHost: 127.0.0.1\r\nA: b\r\n\r\n"]


@pytest.mark.parametrize("answer", [b"", b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n", b"HTTP/1.1 200 OK\r\n"])
async def test_what_is_no_http_is_an_engine_failure(answer: bytes) -> None:
    async with serving(answer) as (dial, _):
        with pytest.raises(EngineFailed):
            await http.get(dial, 1, "/")
        assert await http.answers(dial, 1, "/") is False


async def test_an_endless_answer_is_cut() -> None:
    async with serving(b"HTTP/1.0 200 OK\r\n\r\n", *[bytes(65536)] * 40) as (dial, _):
        with pytest.raises(EngineFailed, match="too long"):
            await http.get(dial, 1, "/")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"HTTP/1.1 401 No\r\n\r\n{}", "answered 401"),
        (b"HTTP/1.1 200 OK\r\n\r\n[]", "answered 200"),
        (b"HTTP/1.1 200 OK\r\n\r\n<html>", "not JSON"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 100_000, "not JSON"),
    ],
)
async def test_only_a_json_object_counts_as_an_answer(answer: bytes, message: str) -> None:
    async with serving(answer) as (dial, _):
        with pytest.raises(EngineFailed, match=message):
            await http.get_json(dial, 1, "/", {})


async def test_a_gateway_that_does_not_listen_is_not_ready() -> None:
    async def gone(_port: int) -> Stream:
        raise ContainerNotRunning

    assert await http.answers(gone, 1, "/") is False


async def test_a_gateway_that_says_nothing_is_not_ready() -> None:
    left, right = await silent_pair()

    async def dial(_port: int) -> Stream:
        return left

    assert await http.answers(dial, 1, "/") is False
    right[1].close()


async def silent_pair() -> tuple[Stream, Stream]:
    one, two = socket.socketpair()
    return await asyncio.open_connection(sock=one), await asyncio.open_connection(sock=two)
