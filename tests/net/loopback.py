"""Servers on loopback, and a resolver that knows a few names."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network

from roost.net.addresses import Address
from roost.net.errors import NameNotResolved
from roost.net.policy import EgressPolicy

OPEN = EgressPolicy(allow_private=[ip_network("127.0.0.0/8"), ip_network("::1/128")])

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class FakeResolver:
    """A resolver that knows a few names; `asked` are the hosts that it was asked for, `subjects` for whom."""

    def __init__(self, names: Mapping[str, Sequence[str]] | None = None) -> None:
        self.names = dict(names or {})
        self.asked: list[str] = []
        self.subjects: list[str] = []

    async def resolve(self, subject: str, host: str) -> Sequence[Address]:
        self.asked.append(host)
        self.subjects.append(subject)
        if host not in self.names:
            raise NameNotResolved(host)
        return [ip_address(text) for text in self.names[host]]


@asynccontextmanager
async def serving(handler: Handler, host: str = "127.0.0.1", *, limit: int = 1 << 16) -> AsyncIterator[int]:
    """The port of a server whose open connections are dropped at the end."""
    tasks: list[asyncio.Task[None]] = []

    async def attend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await handler(reader, writer)
        except (OSError, EOFError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(
        lambda *stream: tasks.append(asyncio.create_task(attend(*stream))), host, 0, limit=limit
    )
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(result is None or isinstance(result, asyncio.CancelledError) for result in results), results


@dataclass
class OriginServer:
    """An HTTP/1.1 server that keeps each request as it came and answers with `reply`."""

    reply: bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"
    heads: list[bytes] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head)
        if b"\r\nTransfer-Encoding: chunked" in head:
            self.bodies.append(await reader.readuntil(b"\r\n0\r\n\r\n"))
        elif b"\r\nContent-Length: " in head:
            length = int(head.split(b"\r\nContent-Length: ")[1].split(b"\r\n")[0])
            self.bodies.append(await reader.readexactly(length))
        writer.write(self.reply)
        await writer.drain()
        writer.close()


async def until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.005)
