"""Copy bytes between streams: bounded in memory (a slow reader slows the sender), counted, ended when idle."""

import asyncio
import re
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field

from roost.agents.network.egress.errors import ConnectionIdle, InvalidProxyRequest
from roost.core import clock

Count = Callable[[int], None]

_BLOCK_BYTES = 128 * 1024
_MAX_LINE = 4096  # a chunk's size line, a trailer line
_MAX_TRAILERS = 64
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})(?:[ \t]*;[\t\x20-\x7e\x80-\xff]*)?\r\n")


@dataclass
class ByteCounts:
    """Bytes that an agent sent (`up`) and received (`down`), and the time of the last transfer."""

    up: int = 0
    down: int = 0
    moved_at: float = field(default_factory=clock.monotonic_seconds)

    def add_sent(self, count: int) -> None:
        self.up += count
        self.moved_at = clock.monotonic_seconds()

    def add_received(self, count: int) -> None:
        self.down += count
        self.moved_at = clock.monotonic_seconds()


async def copy_bytes(source: asyncio.StreamReader, sink: asyncio.StreamWriter, count: Count) -> None:
    """Copy until the source ends."""
    while data := await source.read(_BLOCK_BYTES):
        await _write(sink, data)
        count(len(data))


async def copy_bytes_and_end(source: asyncio.StreamReader, sink: asyncio.StreamWriter, count: Count) -> None:
    """Copy until the source ends and forward the end; the other direction stays open."""
    await copy_bytes(source, sink, count)
    if not sink.is_closing():
        sink.write_eof()


async def pump_body(source: asyncio.StreamReader, sink: asyncio.StreamWriter, length: int | None, count: Count) -> None:
    """Copy a request body of `length` bytes, or a chunked one.

    Raises InvalidProxyRequest; EOFError when the source ends early.
    """
    if length is not None:
        return await _copy_exactly(source, sink, length, count)
    while size := await _read_chunk_size(source):
        await _write(sink, b"%x\r\n" % size)
        await _copy_exactly(source, sink, size, count)
        if await source.readexactly(2) != b"\r\n":
            raise InvalidProxyRequest("A chunk is longer than its declared size")
        await _write(sink, b"\r\n")
    for _ in range(_MAX_TRAILERS):
        if await _read_line(source) == b"\r\n":
            return await _write(sink, b"0\r\n\r\n")  # no trailers: they could smuggle fields past the head
    raise InvalidProxyRequest(f"The body has more than {_MAX_TRAILERS} trailer lines")


async def run_both(
    up: Coroutine[None, None, None],
    down: Coroutine[None, None, None],
    traffic: ByteCounts,
    idle: float,
    *,
    until_down: bool = False,
) -> None:
    """Run both directions until both have ended (or, with `until_down`, until the second has).

    The first failure ends the other direction and is raised. Raises ConnectionIdle when nothing moved for `idle`
    seconds.
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


async def close_gracefully(writer: asyncio.StreamWriter, seconds: float) -> None:
    """Close after the pending output is sent; drop the rest after `seconds`."""
    writer.close()
    try:
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(seconds):
                await writer.wait_closed()
    finally:
        writer.transport.abort()


async def _copy_exactly(source: asyncio.StreamReader, sink: asyncio.StreamWriter, length: int, count: Count) -> None:
    while length:
        data = await source.read(min(length, _BLOCK_BYTES))
        if not data:
            raise EOFError
        await _write(sink, data)
        length -= len(data)
        count(len(data))


async def _write(sink: asyncio.StreamWriter, data: bytes) -> None:
    if sink.is_closing():
        raise ConnectionResetError  # asyncio raises in drain, uvloop refuses the write as a programming error
    sink.write(data)
    await sink.drain()


async def _read_chunk_size(source: asyncio.StreamReader) -> int:
    found = _CHUNK_SIZE.fullmatch(await _read_line(source))
    if found is None:
        raise InvalidProxyRequest("A chunk size is not a hexadecimal number")
    return int(found[1], 16)


async def _read_line(source: asyncio.StreamReader) -> bytes:
    try:
        line = await source.readuntil(b"\r\n")
    except asyncio.LimitOverrunError:
        line = b""
    if not 0 < len(line) <= _MAX_LINE:
        raise InvalidProxyRequest(f"A chunk size or trailer line is longer than {_MAX_LINE} bytes")
    return line
