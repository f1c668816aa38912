"""Bridges whose other end is a test: it receives frames, and sends whatever it wants."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from roost.core.machine.unix_socket import StreamHandler
from roost.drivers.runtime.bridge import Bridge

HEADER = struct.Struct("!cII")


def frame(kind: bytes, number: int, data: bytes = b"", *, count: int | None = None) -> bytes:
    return HEADER.pack(kind, number, len(data) if count is None else count) + data


@dataclass
class BridgeEnds:
    """A server's bridge, and the carrier's other end."""

    bridge: Bridge
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def receive(self, seconds: float | None = 10) -> tuple[bytes, int, int, bytes]:
        """Return the next frame: kind, number, count, data."""
        async with asyncio.timeout(seconds):
            kind, number, count = HEADER.unpack(await self.reader.readexactly(HEADER.size))
            return kind, number, count, await self.reader.readexactly(count if kind in b"od" else 0)

    async def send(self, *frames: bytes) -> None:
        self.writer.writelines(frames)
        await self.writer.drain()

    async def reach(self) -> None:
        """Return when the bridge has processed all frames that were sent, or has ended."""
        async with asyncio.timeout(10):
            answer = asyncio.ensure_future(self.bridge.ping())
            answer.add_done_callback(lambda done: done.exception())
            while not answer.done():
                try:
                    kind, *_ = await self.receive()
                except (asyncio.IncompleteReadError, ConnectionError):
                    return
                if kind == b"p":
                    await self.send(frame(b"p", 0))
                    await asyncio.wait([answer])


@asynccontextmanager
async def open_ends(relays: dict[str, StreamHandler] | None = None) -> AsyncIterator[BridgeEnds]:
    ours, theirs = socket.socketpair()
    loop = asyncio.get_running_loop()
    bridge = Bridge((relays or {}).get)
    await loop.create_connection(lambda: bridge, sock=ours)
    reader, writer = await asyncio.open_connection(sock=theirs)
    try:
        yield BridgeEnds(bridge, reader, writer)
    finally:
        bridge.abort()
        writer.close()
