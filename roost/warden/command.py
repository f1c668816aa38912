"""Commands of clients, with input and output as frames, and a time limit.

A killed command leaves no process behind; one that ends by itself may leave background processes, as in a shell.
"""

from __future__ import annotations

import os

from .event_loop import WRITE, CoroutineTask
from .streams import is_disconnected
from .waiting import TimeLimit, gather_results, wait_until_done, wait_until_ready

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .processes import ChildProcess
    from .protocol import Connection

TIMEOUT_EXIT_CODE = 124
DRAIN_SECONDS = 5.0
CHECK_SECONDS = 1.0


async def serve_command(child: ChildProcess, connection: Connection, timeout_seconds: float, limit: int | None) -> None:
    """Serve a running command until it ends; kill it after the timeout or when the client disconnects.

    Output beyond `limit` bytes per stream is dropped and reported as `truncated`.
    """
    output = CoroutineTask(_send_output(child, connection, limit))
    client = CoroutineTask(_receive_input(child, connection))
    try:
        await wait_until_done(output, client, seconds=timeout_seconds, first=True)
        timed_out = not output.done() and not client.done()
        if not output.done() or output.exception():
            await child.kill()
        if timed_out:
            await wait_until_done(output, seconds=DRAIN_SECONDS)  # send what it wrote before its end
        if output.done() and not output.exception() and not client.done():
            code = TIMEOUT_EXIT_CODE if timed_out else child.ended.result()
            with TimeLimit(DRAIN_SECONDS):
                await connection.send_end(code=code, timedOut=timed_out, truncated=output.result())
            await wait_until_done(client, seconds=DRAIN_SECONDS)  # a close with unread input would discard the reply
    finally:
        output.cancel()
        client.cancel()
        await wait_until_done(output, client)


async def _send_output(child: ChildProcess, connection: Connection, limit: int | None) -> bool:
    """Send all output, wait for the end of the process, and return whether output was dropped."""
    streams = zip(child.outputs, (b"o", b"e"), strict=True)
    dropped = await gather_results(*(_send_stream(child, fd, connection, kind, limit) for fd, kind in streams))
    await child.ended
    return any(dropped)


async def _send_stream(child: ChildProcess, fd: int, connection: Connection, kind: bytes, limit: int | None) -> bool:
    """Send the output of a stream, and return whether some was dropped."""
    received = 0
    async for data in child.output(fd):
        kept = data if limit is None else data[: max(limit - received, 0)]
        received += len(data)
        if kept:
            await connection.send_frame(kind, kept)
    return limit is not None and received > limit


async def _receive_input(child: ChildProcess, connection: Connection) -> None:
    """Pass input to the command until the client disconnects."""
    try:
        while True:
            kind, data = await connection.read_frame()
            if kind == b"i" and data:
                await _write_stdin(child, data, connection)
            elif kind == b"i":
                child.close_stdin()
    except ConnectionError:
        return


async def _write_stdin(child: ChildProcess, data: bytes, connection: Connection) -> None:
    while data and child.stdin >= 0:
        try:
            data = data[os.write(child.stdin, data) :]
        except BlockingIOError:
            try:
                with TimeLimit(CHECK_SECONDS):
                    await wait_until_ready(child.stdin, WRITE, child.ended)
            except TimeoutError:
                if is_disconnected(connection.sock.fileno()):  # nothing else reads from the client meanwhile
                    raise ConnectionResetError from None
        except BrokenPipeError:
            child.close_stdin()
