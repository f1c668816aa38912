"""A cheap client: several connections, each with one request, or one WebSocket message, after the other."""

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Any

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)
_BATCH = 50


async def send_requests(port: int, request: bytes, requests: int, connections: int) -> Sequence[float]:
    """Send `requests` requests over `connections` connections; return how long each took, in seconds.

    Raises RuntimeError for a response other than 200.
    """
    return await _run_clients(partial(_HttpClient, request), port, requests, connections)


async def echo_messages(
    port: int, handshake: bytes, message: bytes, messages: int, connections: int
) -> Sequence[float]:
    """Send `messages` messages over `connections` WebSockets to a server that echoes their bytes.

    Return how long each took to come back, in seconds. Raises RuntimeError for a response other than 101.
    """
    return await _run_clients(partial(_EchoClient, handshake, message), port, messages, connections)


@contextlib.asynccontextmanager
async def hold_responses(port: int, requests: Sequence[bytes], status: bytes) -> AsyncIterator[None]:
    """Send each request on a connection of its own; in the block all have a response of which no more is read.

    Raises RuntimeError for another status.
    """
    loop, held = asyncio.get_running_loop(), list[_HeldResponse]()
    try:
        for start in range(0, len(requests), _BATCH):
            for request in requests[start : start + _BATCH]:
                make = partial(_HeldResponse, request, status, loop.create_future())
                held.append((await loop.create_connection(make, "127.0.0.1", port))[1])
            await asyncio.gather(*(client.begun for client in held[start:]))
        yield
    finally:
        for client in held:
            client.close()
        await asyncio.sleep(0.1)


async def _run_clients(
    make: Callable[[int, asyncio.Future[None], list[float]], asyncio.Protocol], port: int, count: int, connections: int
) -> Sequence[float]:
    loop, seconds = asyncio.get_running_loop(), list[float]()
    dones = [loop.create_future() for _ in range(connections)]
    for done in dones:
        await loop.create_connection(partial(make, count // connections, done, seconds), "127.0.0.1", port)
    await asyncio.gather(*dones)
    return seconds


class _Client(asyncio.Protocol):
    """Connection that sends the same bytes again once the answer to them is complete."""

    def __init__(self, data: bytes, count: int, done: asyncio.Future[None], seconds: list[float]) -> None:
        self._data, self._left, self._done, self._seconds = data, count, done, seconds
        self._sent_at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport
        self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._left:
            self._fail(str(exc).encode())
        elif not self._done.done():
            self._done.set_result(None)

    def _send(self) -> None:
        self._sent_at = time.perf_counter()
        self._transport.write(self._data)

    def _next(self) -> None:
        self._seconds.append(time.perf_counter() - self._sent_at)
        self._left -= 1
        if self._left:
            self._send()
        else:
            self._transport.close()

    def _fail(self, reason: bytes) -> None:
        if not self._done.done():
            self._done.set_exception(RuntimeError(reason.decode("latin-1")))


class _HttpClient(_Client):
    """Connection that counts complete responses."""

    _head, _missing = b"", 0

    def data_received(self, data: bytes) -> None:
        if not self._missing:
            self._head += data
            head, end, body = self._head.partition(b"\r\n\r\n")
            if not end:
                return
            length = _LENGTH.search(head + b"\r\n")
            if not head.startswith(b"HTTP/1.1 200 ") or length is None:
                self._fail(head[:200])
                return
            self._head, self._missing, data = b"", int(length[1]), body
        self._missing -= len(data)
        if not self._missing:
            self._next()


class _EchoClient(_Client):
    """WebSocket whose messages come back."""

    def __init__(
        self, handshake: bytes, message: bytes, count: int, done: asyncio.Future[None], seconds: list[float]
    ) -> None:
        super().__init__(message, count, done, seconds)
        self._handshake, self._head = handshake, b""
        self._missing = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._transport.write(self._handshake)

    def data_received(self, data: bytes) -> None:
        if self._missing:
            self._missing -= len(data)
            if not self._missing:
                self._next()
            return
        self._head += data
        if self._head.endswith(b"\r\n\r\n"):
            if self._head.startswith(b"HTTP/1.1 101 "):
                self._send()
            else:
                self._fail(self._head[:200])

    def _send(self) -> None:
        self._missing = len(self._data)
        super()._send()


class _HeldResponse(asyncio.Protocol):
    """Connection that reads the beginning of a response, and nothing after it."""

    def __init__(self, request: bytes, status: bytes, begun: asyncio.Future[None]) -> None:
        self.begun = begun
        self._request, self._status = request, status

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._transport.pause_reading()
        if self.begun.done():
            return
        if data.startswith(b"HTTP/1.1 %b " % self._status):
            self.begun.set_result(None)
        else:
            self.begun.set_exception(RuntimeError(data[:200].decode("latin-1")))

    def close(self) -> None:
        self._transport.abort()
