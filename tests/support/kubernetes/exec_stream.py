"""`pods/exec` over WebSocket: the channels of v4 and v5, and a session for the handler that plays the container."""

import asyncio
import json
from asyncio.subprocess import PIPE
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

from websockets.frames import Frame, Opcode
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol

from tests.support.kubernetes.errors import internal_error
from tests.support.kubernetes.http_server import Connection, Request
from tests.support.kubernetes.resources import Object
from tests.support.kubernetes.schemas import check_object

STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
SUBPROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")


class ExecFailed(Exception):  # noqa: N818 - what it is
    """The container runtime could not run the command; the message goes into the status."""


@dataclass
class ExecSession:
    """A command in a container. The handler returns its exit code, or raises ExecFailed."""

    pod: Object
    container: str
    command: list[str]
    stdin: bool
    stdout: bool
    stderr: bool
    tty: bool
    sizes: asyncio.Queue[tuple[int, int]] = field(default_factory=asyncio.Queue[tuple[int, int]])
    """Widths and heights that the client sets for the terminal."""
    _input: asyncio.Queue[bytes] = field(default_factory=asyncio.Queue[bytes])
    _send: Callable[[int, bytes], Awaitable[None]] | None = None

    async def read(self) -> bytes:
        """Return the next bytes of stdin, empty at its end."""
        return await self._input.get() if self.stdin else b""

    async def write(self, data: bytes, channel: int = STDOUT) -> None:
        """Send bytes of stdout or stderr."""
        assert self._send
        if self.stdout if channel == STDOUT else self.stderr:
            await self._send(channel, data)


ExecHandler = Callable[[ExecSession], Awaitable[int]]


async def run_local_process(session: ExecSession) -> int:
    """Run the command as a process of this machine; a handler for tests that need no terminal."""
    try:
        process = await asyncio.create_subprocess_exec(*session.command, stdin=PIPE, stdout=PIPE, stderr=PIPE)
    except OSError as error:
        raise ExecFailed(f"failed to exec in container: {error}") from error
    assert process.stdin
    assert process.stdout
    assert process.stderr

    async def copy_output(reader: asyncio.StreamReader, channel: int) -> None:
        while data := await reader.read(32_768):
            await session.write(data, channel)

    async def copy_input(writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await session.read():
                writer.write(data)
                await writer.drain()
            writer.close()

    feeding = asyncio.create_task(copy_input(process.stdin))
    try:
        await asyncio.gather(copy_output(process.stdout, STDOUT), copy_output(process.stderr, STDERR))
        return await process.wait()
    finally:
        feeding.cancel()
        with suppress(ProcessLookupError):
            process.kill()


async def serve_exec(session: ExecSession, handler: ExecHandler, request: Request, connection: Connection) -> None:
    """Upgrade the connection, run the handler, and send the status of the command."""
    channels = _Channels(session, request, connection)
    await channels.accept()
    session._send = channels.send
    reading = asyncio.create_task(channels.read_input())
    running = asyncio.create_task(_run(session, handler, translated=channels.version >= 5))
    try:
        await asyncio.wait({reading, running}, return_when="FIRST_COMPLETED")
        if not running.done():  # the client has gone
            return
        status = running.result()
        check_object({"kind": "Status", "apiVersion": "v1", **status})
        await channels.send(ERROR, json.dumps(status, separators=(",", ":")).encode())
        await channels.close()
    finally:
        for task in (reading, running):
            task.cancel()
        await asyncio.gather(reading, running, return_exceptions=True)


async def _run(session: ExecSession, handler: ExecHandler, *, translated: bool) -> Object:
    """Return the status: of the kubelet, or as the API server translates it for v5."""
    try:
        code = await handler(session)
    except ExecFailed as error:
        message = f"error executing command in container: {error}"
        status = internal_error(f"Internal error occurred: {message}" if translated else message).status()
        return {key: value for key, value in status.items() if key not in {"kind", "apiVersion"}}
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    ended = f"error executing command [{' '.join(session.command)}], exit code {code}"
    message = f"command terminated with exit code {code}" if translated else ended
    causes = [{"reason": "ExitCode", "message": str(code)}]
    status = {"metadata": {}, "status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": causes}}
    return {**status, "message": f"command terminated with non-zero exit code: {message}"}


class _Channels:
    """The WebSocket of a session: a frame's first byte is its channel."""

    def __init__(self, session: ExecSession, request: Request, connection: Connection) -> None:
        self._session, self._request, self._connection = session, request, connection
        self._protocol = ServerProtocol(subprotocols=[Subprotocol(one) for one in SUBPROTOCOLS], max_size=None)
        self.version = 0

    async def accept(self) -> None:
        self._protocol.receive_data(self._request.head)
        (handshake,) = self._protocol.events_received()
        self._protocol.send_response(self._protocol.accept(handshake))  # type: ignore[arg-type]
        self.version = int((self._protocol.subprotocol or "v4")[1])
        await self._flush()
        first = next(
            (one for one, wanted in ((STDOUT, self._session.stdout), (STDERR, self._session.stderr)) if wanted), ERROR
        )
        await self.send(first, b"")  # tells the client that the connection stands

    async def send(self, channel: int, data: bytes) -> None:
        self._protocol.send_binary(bytes([channel]) + data)
        await self._flush()

    async def close(self) -> None:
        self._protocol.send_close(1000)
        await self._flush()

    async def _flush(self) -> None:
        for data in self._protocol.data_to_send():
            if data:
                await self._connection.send(data)

    async def read_input(self) -> None:
        """Hand the client's frames to the session until the client closes."""
        parts: list[bytes] = []
        while data := await self._connection.reader.read(65_536):
            self._protocol.receive_data(data)
            await self._flush()
            for frame in self._protocol.events_received():
                assert isinstance(frame, Frame)
                if frame.opcode is Opcode.CLOSE:
                    return
                if frame.opcode in {Opcode.BINARY, Opcode.TEXT, Opcode.CONT}:
                    parts.append(bytes(frame.data))
                    if frame.fin:
                        self._take_message(b"".join(parts))
                        parts.clear()

    def _take_message(self, message: bytes) -> None:
        if not message:
            return
        channel, data = message[0], message[1:]
        if channel == STDIN and data:
            self._session._input.put_nowait(data)
        elif channel == RESIZE and data:
            size = json.loads(data)
            self._session.sizes.put_nowait((size["Width"], size["Height"]))
        elif channel == CLOSE and self.version >= 5 and data[:1] == bytes([STDIN]):
            self._session._input.put_nowait(b"")
