"""`roost shell`: an interactive shell in an agent's container, which survives a lost connection."""

import asyncio
import json
import os
import signal
import sys
import termios
import tty
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlencode

import typer

from roost.cli.agents.execute import join_command
from roost.cli.arguments import AgentName
from roost.cli.client.session import Data, ServerSession, load_session
from roost.cli.output.output import ExitCode, exit_with_error, print_error
from roost.core import clock

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection


_DEFAULT_SIZE, _SIZE_LIMIT = (80, 24), 1000
_ESCAPE, _LINE_ENDS = ord("~"), b"\r\n"
_SCREEN_RESET = (  # of a full-screen program: alternate screen, hidden cursor, modes of mouse, paste and keys
    b"\x1b[?1049l\x1b[?25h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[?1l\x1b>\x1b[0m"
)
_READ_BYTES = 4096
_MESSAGE_BYTES = 15 * 1024  # the server takes messages of up to 16 KiB
_TYPED_LIMIT = 1 << 20  # further input is dropped while the program reads none
_ACKNOWLEDGE_BYTES = 16 * 1024
_GRACE_SECONDS, _RETRY_SECONDS, _MAX_RETRY_SECONDS = 60.0, 0.2, 5.0
_RETRY_CODES = frozenset({1006, 1012, 1013})  # no close message, a restart of the server, and "try again"


def open_shell(
    agent: AgentName,
    command: Annotated[
        list[str] | None, typer.Argument(metavar="COMMAND", help="Command to run in place of a shell.")
    ] = None,
    data: Data = None,
) -> None:
    """Open a shell in an agent's container and exit with its exit code. `~.` at the start of a line leaves it."""
    if not sys.stdin.isatty():
        exit_with_error("A shell needs a terminal; `roost exec -i` takes input from a pipe or a file.", ExitCode.USAGE)
    from websockets.exceptions import InvalidStatus

    from roost.cli.client.websocket import exit_with_refusal

    server = load_session(data)
    path = f"{server.agent_path(agent)}/console/stream"
    session = _ShellSession(server, path, {"command": join_command(command)} if command else {})
    try:
        with raw_terminal():
            code = asyncio.run(session.run())
    except InvalidStatus as refused:
        exit_with_refusal(refused)
    except OSError as error:
        exit_with_error(f"The connection to {server.url} failed: {error}.", ExitCode.UNREACHABLE)
    if code is None:
        print_error(session.reason)
    raise typer.Exit(ExitCode.FAILED if code is None else code)


class _ShellSession:
    """A session of a terminal over as many connections as it takes."""

    def __init__(self, server: ServerSession, path: str, start: dict[str, str]) -> None:
        self.reason = ""
        self._server, self._path, self._start = server, path, start
        self._session: str | None = None
        self._after = self._acknowledged = 0
        self._typed, self._escape = bytearray(), EscapeFilter()
        self._is_resized = False
        self._changed, self._leaving = asyncio.Event(), asyncio.Event()

    async def run(self) -> int | None:
        """Return the exit code, or None with a `reason`. Raises OSError, and the library's exception for a refusal."""
        loop = asyncio.get_running_loop()
        loop.add_reader(sys.stdin.fileno(), self._read_keys)
        loop.add_signal_handler(signal.SIGWINCH, self._note_resize)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._leave)
        serving, leaving = asyncio.create_task(self._serve()), asyncio.create_task(self._leaving.wait())
        code: int | None = None
        try:
            await asyncio.wait({serving, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                code = serving.result()
            return code
        finally:
            loop.remove_reader(sys.stdin.fileno())
            for task in (serving, leaving):
                task.cancel()
            await asyncio.gather(serving, leaving, return_exceptions=True)
            if code is None:
                reset_screen()

    def _leave(self) -> None:
        self.reason = f"The session was left; its programs end in {_GRACE_SECONDS:.0f} seconds."
        self._leaving.set()

    def _read_keys(self) -> None:
        keys = os.read(sys.stdin.fileno(), _READ_BYTES)
        typed = self._escape.filter(keys)
        if len(self._typed) < _TYPED_LIMIT:
            self._typed += typed
        self._changed.set()
        if self._escape.is_leaving or not keys:
            self._leave()

    def _note_resize(self) -> None:
        self._is_resized = True
        self._changed.set()

    async def _serve(self) -> int | None:
        """Connect, again after each loss, until the program or the session ends."""
        from websockets.exceptions import ConnectionClosed, InvalidStatus

        from roost.core.periodic import Backoff  # slow to import

        deadline, backoff = float("inf"), Backoff(_RETRY_SECONDS, _MAX_RETRY_SECONDS)
        while True:
            try:
                return await self._serve_connection()
            except ConnectionClosed as closed:
                if closed.rcvd is not None and closed.rcvd.code not in _RETRY_CODES:
                    self.reason = f"The session ended: {closed.rcvd.reason or 'no reason given'}."
                    return None
                write_screen(b"\r\n[The connection was lost; connecting again. ~. leaves.]\r\n")
                deadline = clock.monotonic_seconds() + _GRACE_SECONDS
                backoff.reset()
            except (OSError, InvalidStatus) as error:
                is_refusal = isinstance(error, InvalidStatus) and error.response.status_code < 500
                if self._session is None or is_refusal or clock.monotonic_seconds() > deadline:
                    raise
            await backoff.pause()

    async def _serve_connection(self) -> int | None:
        from roost.cli.client.websocket import connect_websocket

        columns, rows = screen_size()
        continued = {"session": self._session, "after": self._after} if self._session else self._start
        query = urlencode({"cols": columns, "rows": rows, **continued})
        async with connect_websocket(self._server, f"{self._path}?{query}") as socket:
            sender = asyncio.create_task(self._send_input(socket))
            try:
                while (code := await self._receive(socket, await socket.recv())) is None:
                    continue
                return code
            finally:
                sender.cancel()
                await asyncio.gather(sender, return_exceptions=True)

    async def _receive(self, socket: "ClientConnection", message: bytes | str) -> int | None:
        """Show a message of output; return the exit code if it has one."""
        if isinstance(message, str):
            event: dict[str, Any] = json.loads(message)
            self._session = event.get("session", self._session)
            return event.get("exitCode")
        write_screen(message[8:])  # the first 8 bytes are its offset in the session's output
        self._after = int.from_bytes(message[:8]) + len(message) - 8
        if self._after >= self._acknowledged + _ACKNOWLEDGE_BYTES:
            self._acknowledged = self._after
            await socket.send(json.dumps({"type": "acknowledge", "offset": self._after}))
        return None

    async def _send_input(self, socket: "ClientConnection") -> None:
        from websockets.exceptions import ConnectionClosed

        with suppress(ConnectionClosed):  # the receiver knows
            while True:
                if self._is_resized:
                    self._is_resized = False
                    columns, rows = screen_size()
                    await socket.send(json.dumps({"type": "resize", "cols": columns, "rows": rows}))
                if keys := bytes(self._typed[:_MESSAGE_BYTES]):
                    del self._typed[: len(keys)]
                    await socket.send(keys)
                else:
                    await self._changed.wait()
                    self._changed.clear()


@contextmanager
def raw_terminal() -> Generator[None]:
    """Pass keys unchanged while the block runs; then restore the terminal, whatever happened."""
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    tty.setraw(keyboard, termios.TCSANOW)
    try:
        yield
    finally:
        termios.tcsetattr(keyboard, termios.TCSANOW, before)


def reset_screen() -> None:
    """Undo the modes that a program has set which can no longer do it."""
    if sys.stdout.isatty():
        write_screen(_SCREEN_RESET)


def write_screen(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def screen_size() -> tuple[int, int]:
    """Return columns and rows, within what the server accepts."""
    try:
        columns, rows = os.get_terminal_size(sys.stdin.fileno())
    except OSError:
        return _DEFAULT_SIZE
    return min(columns or _DEFAULT_SIZE[0], _SIZE_LIMIT), min(rows or _DEFAULT_SIZE[1], _SIZE_LIMIT)


class EscapeFilter:
    """Finds `~.` at the start of a line, as ssh does; `~~` is one `~`."""

    def __init__(self) -> None:
        self.is_leaving = False
        self._at_line_start, self._is_escaped = True, False

    def filter(self, keys: bytes) -> bytes:
        """Return the keys for the remote program; those after `~.` are dropped."""
        passed = bytearray()
        for key in keys:
            if self._is_escaped:
                self._is_escaped = False
                if key == ord("."):
                    self.is_leaving = True
                    break
                if key != _ESCAPE:
                    passed.append(_ESCAPE)
            elif self._at_line_start and key == _ESCAPE:
                self._is_escaped = True
                continue
            passed.append(key)
            self._at_line_start = key in _LINE_ENDS
        return bytes(passed)
