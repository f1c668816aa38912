"""A cheap HTTP client: several connections, each with one request after the other."""

import asyncio
import re
from functools import partial
from typing import Any

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)


async def send_requests(port: int, request: bytes, requests: int, connections: int) -> None:
    """Send `requests` requests over `connections` connections. Raises RuntimeError for a response other than 200."""
    loop = asyncio.get_running_loop()
    dones = [loop.create_future() for _ in range(connections)]
    for done in dones:
        await loop.create_connection(partial(_Client, request, requests // connections, done), "127.0.0.1", port)
    await asyncio.gather(*dones)


class _Client(asyncio.Protocol):
    """Connection that counts complete responses."""

    def __init__(self, request: bytes, count: int, done: asyncio.Future[None]) -> None:
        self._request, self._left, self._done = request, count, done
        self._head = b""
        self._missing = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport
        self._transport.write(self._request)

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

    def connection_lost(self, exc: Exception | None) -> None:
        if self._left:
            self._fail(str(exc).encode())
        elif not self._done.done():
            self._done.set_result(None)

    def _next(self) -> None:
        self._left -= 1
        if self._left:
            self._transport.write(self._request)
        else:
            self._transport.close()

    def _fail(self, reason: bytes) -> None:
        if not self._done.done():
            self._done.set_exception(RuntimeError(reason.decode("latin-1")))
