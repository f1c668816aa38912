"""One command on behalf of a client: input and output as frames, an end in time. A command that is cut off leaves
nothing behind; one that ends by itself may leave background processes, as in a shell.
"""

import asyncio
import os
import select

from .processes import ChildProcess, usable
from .protocol import Connection

TIMED_OUT = 124
DRAIN_SECONDS = 5.0
LOOK_SECONDS = 1.0


async def converse(child: ChildProcess, connection: Connection, seconds: float, limit: int | None) -> None:
    """Run to the end, for `seconds`, or until the client goes away; the last two kill the command.

    What goes beyond `limit` bytes of a stream is dropped, and told as `truncated`.
    """
    work = asyncio.create_task(_deliver(child, connection, limit))
    client = asyncio.create_task(_listen(child, connection))
    try:
        await asyncio.wait({work, client}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        timed_out = not work.done() and not client.done()
        if not work.done() or work.exception():
            await child.kill()
        if timed_out:
            await asyncio.wait({work}, timeout=DRAIN_SECONDS)  # what it wrote before its end still arrives
        if work.done() and not work.exception() and not client.done():
            code = TIMED_OUT if timed_out else child.ended.result()
            async with asyncio.timeout(DRAIN_SECONDS):
                await connection.finish(code=code, timedOut=timed_out, truncated=work.result())
            await asyncio.wait({client}, timeout=DRAIN_SECONDS)  # closed under its input, it would miss the answer
    finally:
        work.cancel()
        client.cancel()
        await asyncio.gather(work, client, return_exceptions=True)


async def _deliver(child: ChildProcess, connection: Connection, limit: int | None) -> bool:
    """All output, then the end of the process. True when some was dropped."""
    dropped = await asyncio.gather(
        *(_stream(child, fd, connection, kind, limit) for fd, kind in zip(child.outputs, (b"o", b"e"), strict=True))
    )
    await child.ended
    return any(dropped)


async def _stream(child: ChildProcess, fd: int, connection: Connection, kind: bytes, limit: int | None) -> bool:
    sent = 0
    dropped = False
    async for data in child.output(fd):
        kept = data if limit is None else data[: limit - sent]
        dropped = dropped or len(kept) < len(data)
        if kept:
            sent += len(kept)
            await connection.frame(kind, kept)
    return dropped


async def _listen(child: ChildProcess, connection: Connection) -> None:
    """Pass input on; returns when the client has gone."""
    try:
        while True:
            kind, data = await connection.take()
            if kind == b"i" and data:
                await _feed(child, data, connection)
            elif kind == b"i":
                child.close_stdin()
    except ConnectionError:
        return


async def _feed(child: ChildProcess, data: bytes, connection: Connection) -> None:
    while data and child.stdin >= 0:
        try:
            data = data[os.write(child.stdin, data) :]
        except BlockingIOError:
            try:
                async with asyncio.timeout(LOOK_SECONDS):
                    await usable(child.stdin, child.ended, write=True)
            except TimeoutError:
                if hung_up(connection.sock.fileno()):  # nobody reads from the client meanwhile
                    raise ConnectionResetError from None
        except BrokenPipeError:
            child.close_stdin()


def hung_up(fd: int) -> bool:
    """Whether the other side is gone altogether; one that only finished sending is not."""
    poll = select.poll()
    poll.register(fd, 0)  # a hang-up is always told
    return bool(poll.poll(0))
