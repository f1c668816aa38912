"""Edge cases of the connection that `test_rpc.py` does not cover."""

import asyncio
import socket

import pytest

from roost.drivers.engine.contract import EngineFailed
from roost.drivers.engine.openclaw.websocket import StreamWebSocket
from roost.drivers.runtime.contract import Stream


async def pair() -> tuple[Stream, Stream]:
    one, two = socket.socketpair()
    return await asyncio.open_connection(sock=one), await asyncio.open_connection(sock=two)


async def test_the_end_of_the_stream_during_the_upgrade_is_reported() -> None:
    ours, theirs = await pair()
    theirs[1].close()
    with pytest.raises(EngineFailed, match="refused the WebSocket"):
        async with StreamWebSocket.open(ours, "ws://127.0.0.1:1/", 100):
            pass
    assert ours[1].is_closing()


async def test_an_answer_that_is_not_http_is_reported() -> None:
    ours, theirs = await pair()
    theirs[1].write(b"\0" * 100 + b"\r\n\r\n")
    with pytest.raises(EngineFailed, match="refused the WebSocket"):
        async with StreamWebSocket.open(ours, "ws://127.0.0.1:1/", 100):
            pass
    theirs[1].close()


async def test_endless_headers_are_cut() -> None:
    ours, theirs = await pair()
    theirs[1].write(b"HTTP/1.1 101 Switching Protocols\r\n" + b"A: b\r\n" * 100_000)
    with pytest.raises(EngineFailed, match="refused the WebSocket"):
        async with StreamWebSocket.open(ours, "ws://127.0.0.1:1/", 100):
            pass
    theirs[1].close()
