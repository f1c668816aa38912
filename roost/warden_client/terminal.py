"""Terminals of a container: interactive programs that outlive the connection to them for a grace period."""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

from roost.core.machine.unix_socket import Stream
from roost.warden_client.connection import WardenConnector, read_frames, reply_errors, send_frame
from roost.warden_client.errors import WardenFailed

_MAX_SESSION_CHARS, _MAX_OFFSET = 64, 1 << 53


@dataclass(frozen=True)
class TerminalSize:
    """Size in characters."""

    columns: int
    rows: int


@dataclass(frozen=True)
class TerminalOutput:
    """Output that begins at an offset; the last one has no data and the exit code of the program."""

    offset: int
    data: bytes
    exit_code: int | None = None


class AttachedTerminal:
    """Connection to a terminal, which the warden names `session`."""

    def __init__(self, session: str, offset: int, stream: Stream) -> None:
        self.session = session
        self._offset = offset
        self._reader, self._writer = stream

    async def read_output(self) -> AsyncGenerator[TerminalOutput]:
        """Yield output until the program ends. Raises WardenTerminalTaken if another client connects."""
        async for kind, data in read_frames(self._reader, idle=None, last=True):
            if kind == b"x":
                with reply_errors():
                    yield TerminalOutput(self._offset, b"", int(json.loads(data)["code"]))
            elif kind == b"o":
                yield TerminalOutput(self._offset, data)
                self._offset += len(data)

    async def write(self, data: bytes) -> None:
        """Send input; wait while the program leaves much of it unread."""
        await send_frame(self._writer, b"i", data)

    async def resize(self, size: TerminalSize) -> None:
        await send_frame(self._writer, b"r", size.columns.to_bytes(2) + size.rows.to_bytes(2))

    async def send_signal(self, name: str) -> None:
        """Send a signal, such as `INT`, to the foreground process group."""
        await send_frame(self._writer, b"s", name.encode())

    async def acknowledge(self, offset: int) -> None:
        """Report how far the output was processed: from the first time on, the warden stays a window ahead of it."""
        await send_frame(self._writer, b"a", offset.to_bytes(8))


class WardenTerminals:
    """The operations of terminals; both may also raise ContainerNotRunning, WardenRequestUnknown and WardenFailed."""

    def __init__(self, warden: WardenConnector) -> None:
        self._warden = warden

    def open(
        self, argv: Sequence[str], *, env: Mapping[str, str], size: TerminalSize, grace_seconds: float
    ) -> AbstractAsyncContextManager[AttachedTerminal]:
        """Start a program in the workspace on a new terminal. Raises ExecRefused and WardenBusy.

        When the context is left, all its processes are killed after `grace_seconds`, unless a client connects again.
        """
        request = {"argv": [*argv], "env": dict(env), "grace": grace_seconds}
        return self._connect("open_terminal", request, size)

    def attach(self, session: str, *, after: int, size: TerminalSize) -> AbstractAsyncContextManager[AttachedTerminal]:
        """Connect to a terminal that runs, displace its client, and repeat its output from an offset.

        If the output from there is not kept any more, the first output has a later offset. Raises
        WardenTerminalNotFound.
        """
        return self._connect("attach_terminal", {"session": session, "after": after}, size)

    @asynccontextmanager
    async def _connect(
        self, operation: str, request: Mapping[str, object], size: TerminalSize
    ) -> AsyncGenerator[AttachedTerminal]:
        async with self._warden.request(operation, **request, columns=size.columns, rows=size.rows) as (reply, stream):
            with reply_errors():
                session, offset = str(reply["session"]), int(reply["offset"])
            if len(session) > _MAX_SESSION_CHARS or not 0 <= offset <= _MAX_OFFSET:
                raise WardenFailed
            yield AttachedTerminal(session, offset, stream)
