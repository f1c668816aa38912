"""Connections to a container's warden: requests, replies and frames of `docs/builders/warden-protocol.md`.

An agent may have taken over its container, so replies are not trusted: every length is bounded, every step has a
deadline, and replies are only data.
"""

import asyncio
import json
import struct
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Coroutine, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, TypeVar

from roost.core.machine.unix_socket import Stream
from roost.warden_client.errors import (
    PROBLEMS,
    ContainerNotRunning,
    ExecRefused,
    PathRefused,
    WardenDisconnected,
    WardenFailed,
    WardenTimedOut,
)

Json = dict[str, Any]
Frame = tuple[bytes, bytes]
T = TypeVar("T")

CALL_SECONDS = 10.0
CHUNK_BYTES = 256 * 1024
_HEADER = struct.Struct("!cI")
_FRAME_BYTES = 1 << 20
_ITEMS, _ITEMS_BYTES = 10_000, 32 << 20
_STEP_SECONDS = 10.0
_REPLY_ERRORS = (OSError, EOFError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)


class WardenConnector:
    """Sends requests to one warden, each on a connection of its own."""

    def __init__(self, connect: Callable[[], Awaitable[Stream]]) -> None:
        self._connect = connect

    async def read_items(self, parse: Callable[[Any], T], op: str, **request: object) -> Sequence[T]:
        items: list[T] = []
        size = 0
        async with self.request(op, **request) as (_, (reader, _)), reply_deadline():
            async for _, data in read_frames(reader):
                items += map(parse, json.loads(data))
                size += len(data)
                if size > _ITEMS_BYTES or len(items) > _ITEMS:
                    raise WardenFailed
        return items

    @asynccontextmanager
    async def request(
        self, op: str, seconds: float = CALL_SECONDS, /, **request: object
    ) -> AsyncGenerator[tuple[Json, Stream]]:
        reply, stream = await self.send_request(op, request, seconds)
        try:
            yield reply, stream
        finally:
            stream[1].transport.abort()  # a close would first send what is left to a warden that may not read it

    async def send_request(self, op: str, request: Json, seconds: float) -> tuple[Json, Stream]:
        line = json.dumps({"op": op, **request}).encode() + b"\n"
        if len(line) > _FRAME_BYTES:
            raise PathRefused if "path" in request else ExecRefused
        reader, writer = await self._connect()
        try:
            async with reply_deadline(seconds):
                writer.write(line)
                return _check_reply(await _read_reply(reader)), (reader, writer)
        except BaseException:
            writer.transport.abort()
            raise


async def _read_reply(reader: asyncio.StreamReader) -> bytes:
    with suppress(ConnectionError):
        if line := await reader.readline():
            return line
    raise ContainerNotRunning  # the connection was closed without a reply


async def read_frames(
    reader: asyncio.StreamReader, *, idle: float | None = _STEP_SECONDS, until: float | None = None, last: bool = False
) -> AsyncGenerator[Frame]:
    """Yield the frames of a reply, including the last one if `last`; `until` is on the loop's clock."""
    now = asyncio.get_running_loop().time
    while True:
        async with reply_deadline(idle if until is None else until - now()):
            kind, length = _HEADER.unpack(await reader.readexactly(_HEADER.size))
            if length > _FRAME_BYTES:
                raise WardenFailed
            async with asyncio.timeout(_STEP_SECONDS):
                data = await reader.readexactly(length)
            if kind == b"x":
                _check_reply(data)
        if last or kind != b"x":
            yield kind, data
        if kind == b"x":
            return


async def send_frame(writer: asyncio.StreamWriter, kind: bytes, data: bytes | memoryview = b"") -> None:
    """Send a frame; if the connection is gone, the reader gets and reports the error."""
    with suppress(OSError):
        writer.write(_HEADER.pack(kind, len(data)))
        writer.write(data)
        await writer.drain()


async def send_frames(writer: asyncio.StreamWriter, kind: bytes, chunks: AsyncIterable[bytes]) -> None:
    """Send chunks as frames, and an empty one for their end. Raises the errors of `chunks`."""
    async for chunk in chunks:
        if chunk:
            await send_frame(writer, kind, chunk)
    await send_frame(writer, kind)


async def send_and_receive(sending: Coroutine[Any, Any, None], receiving: Coroutine[Any, Any, T], seconds: float) -> T:
    """Return what is received, at most `seconds` after all is sent. Raises the errors of both."""
    sender, receiver = asyncio.create_task(sending), asyncio.create_task(receiving)
    try:
        await asyncio.wait({sender, receiver}, return_when=asyncio.FIRST_COMPLETED)
        if not receiver.done():
            await sender
        async with reply_deadline(seconds):
            return await receiver
    finally:
        for task in (sender, receiver):
            task.cancel()
        await asyncio.gather(sender, receiver, return_exceptions=True)


@asynccontextmanager
async def run_meanwhile(sending: Coroutine[Any, Any, None] | None) -> AsyncGenerator[None]:
    """Send something until the block ends; errors are dropped, because the reader gets and reports them."""
    sender = None if sending is None else asyncio.create_task(sending)
    try:
        yield
    finally:
        if sender is not None:
            sender.cancel()
            await asyncio.gather(sender, return_exceptions=True)


@contextmanager
def reply_errors() -> Generator[None]:
    """Raise WardenFailed for malformed replies, WardenDisconnected for those cut off, WardenTimedOut for late ones."""
    try:
        yield
    except (EOFError, ConnectionError) as error:
        raise WardenDisconnected from error
    except TimeoutError as error:
        raise WardenTimedOut from error
    except _REPLY_ERRORS as error:
        raise WardenFailed from error


@asynccontextmanager
async def reply_deadline(seconds: float | None = CALL_SECONDS) -> AsyncGenerator[None]:
    with reply_errors():
        async with asyncio.timeout(seconds):
            yield


def _check_reply(line: bytes) -> Json:
    fields = json.loads(line)
    if fields["ok"] is True:
        return fields
    if known := PROBLEMS.get(fields["error"]):
        raise known
    raise WardenFailed(f"{WardenFailed.message}: {fields['message'][:200]!a}")
