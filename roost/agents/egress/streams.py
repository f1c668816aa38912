"""Bytes from one stream to another: bounded in memory (a slow reader slows the sender), counted, ended when idle."""

import asyncio
import re
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field

from roost.agents.egress.errors import ConnectionIdle, InvalidProxyRequest
from roost.core import clock

Count = Callable[[int], None]

_PIECE = 128 * 1024
_MAX_LINE = 4096  # a chunk's size line, a trailer line
_MAX_TRAILERS = 64
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})(?:[ \t]*;[\t\x20-\x7e\x80-\xff]*)?\r\n")


@dataclass
class ByteCounts:
    """Bytes that an agent sent (`up`) and got (`down`), and when the last of them moved."""

    up: int = 0
    down: int = 0
    moved_at: float = field(default_factory=clock.monotonic_seconds)

    def sent(self, count: int) -> None:
        self.up += count
        self.moved_at = clock.monotonic_seconds()

    def got(self, count: int) -> None:
        self.down += count
        self.moved_at = clock.monotonic_seconds()


async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter, count: Count) -> None:
    """All bytes until the source ends."""
    while data := await source.read(_PIECE):
        await _put(sink, data)
        count(len(data))


async def pump_to_end(source: asyncio.StreamReader, sink: asyncio.StreamWriter, count: Count) -> None:
    """The same, and the end is passed on; the other direction stays open."""
    await pump(source, sink, count)
    if not sink.is_closing():
        sink.write_eof()


async def pump_body(source: asyncio.StreamReader, sink: asyncio.StreamWriter, length: int | None, count: Count) -> None:
    """A request body of `length` bytes, or a chunked one. Raises BadRequest; EOFError when the source ends early."""
    if length is not None:
        return await _exactly(source, sink, length, count)
    while size := await _chunk_size(source):
        await _put(sink, b"%x\r\n" % size)
        await _exactly(source, sink, size, count)
        if await source.readexactly(2) != b"\r\n":
            raise InvalidProxyRequest("A chunk is longer than it said")
        await _put(sink, b"\r\n")
    for _ in range(_MAX_TRAILERS):
        if await _line(source) == b"\r\n":
            return await _put(sink, b"0\r\n\r\n")  # no trailers: they could smuggle fields past the head
    raise InvalidProxyRequest("The body has too many trailers")


async def both(
    up: Coroutine[None, None, None],
    down: Coroutine[None, None, None],
    traffic: ByteCounts,
    idle: float,
    *,
    until_down: bool = False,
) -> None:
    """Run both directions until both have ended (or, with `until_down`, until the second has).

    The first failure ends the other direction and is raised; Idle is raised when nothing moved for `idle` seconds.
    """
    tasks = [asyncio.create_task(up), asyncio.create_task(down)]
    pending = set(tasks)
    try:
        while tasks[1] in pending or (pending and not until_down):
            rest = traffic.moved_at + idle - clock.monotonic_seconds()
            if rest <= 0:
                raise ConnectionIdle
            done, pending = await asyncio.wait(pending, timeout=rest, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
    finally:
        for task in pending:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def hang_up(writer: asyncio.StreamWriter, patience: float) -> None:
    """Close once what was written has left, or drop it after `patience` seconds."""
    writer.close()
    try:
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(patience):
                await writer.wait_closed()
    finally:
        writer.transport.abort()


async def _exactly(source: asyncio.StreamReader, sink: asyncio.StreamWriter, length: int, count: Count) -> None:
    while length:
        data = await source.read(min(length, _PIECE))
        if not data:
            raise EOFError
        await _put(sink, data)
        length -= len(data)
        count(len(data))


async def _put(sink: asyncio.StreamWriter, data: bytes) -> None:
    if sink.is_closing():
        raise ConnectionResetError  # one loop would say so in drain, another refuses the write as a programming error
    sink.write(data)
    await sink.drain()


async def _chunk_size(source: asyncio.StreamReader) -> int:
    found = _CHUNK_SIZE.fullmatch(await _line(source))
    if found is None:
        raise InvalidProxyRequest("A chunk's size is malformed")
    return int(found[1], 16)


async def _line(source: asyncio.StreamReader) -> bytes:
    try:
        line = await source.readuntil(b"\r\n")
    except asyncio.LimitOverrunError:
        line = b""
    if not 0 < len(line) <= _MAX_LINE:
        raise InvalidProxyRequest("A line of the body is too long")
    return line
