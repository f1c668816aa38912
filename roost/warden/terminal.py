"""Terminals: programs on a pseudo-terminal that outlive the connection of their client for a grace period.

A terminal keeps its last output, so a client that connects again continues where its connection ended. Output is read
only as fast as the client takes it; without a client it is read, and the oldest is dropped. Decision 0037 says why.
"""

from __future__ import annotations

import fcntl
import os
import sys
import termios
from time import monotonic

from .event_loop import WRITE, CoroutineTask, EventLoop, Future
from .light_imports import signal, socket, suppress
from .protocol import RequestRefused
from .streams import is_disconnected
from .waiting import TimeLimit, create_background_task, sleep_seconds, wait_until_done

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .event_loop import Timer
    from .processes import ChildProcess
    from .protocol import Connection, Json

    Spawn = Callable[[Json, tuple[int, int]], ChildProcess]

MAX_TERMINALS = 8
RING_BYTES, WINDOW_BYTES, FRAME_BYTES, INPUT_BYTES = 256 * 1024, 64 * 1024, 64 * 1024, 128 * 1024
DRAIN_SECONDS, CHECK_SECONDS, HANGUP_SECONDS = 5.0, 1.0, 1.0
INPUT_FLAGS, IUTF8 = 0, 0x4000  # index in the attributes, and a flag that `termios` lacks
SIGNALS = {
    "HUP": signal.SIGHUP, "INT": signal.SIGINT, "QUIT": signal.SIGQUIT, "KILL": signal.SIGKILL,
    "TERM": signal.SIGTERM, "CONT": signal.SIGCONT, "TSTP": signal.SIGTSTP,
}  # fmt: skip


def open_terminal_pair(columns: int, rows: int) -> tuple[int, int]:
    """Return the descriptors of both sides of a new pseudo-terminal, ours first. Raises OSError and OverflowError."""
    ours, theirs = os.openpty()
    try:
        attributes = termios.tcgetattr(theirs)
        attributes[INPUT_FLAGS] |= IUTF8  # erasing removes a character, not a byte
        termios.tcsetattr(theirs, termios.TCSANOW, attributes)
        set_window_size(ours, columns, rows)
    except BaseException:
        os.close(ours)
        os.close(theirs)
        raise
    return ours, theirs


def set_window_size(fd: int, columns: int, rows: int) -> None:
    """Set the size of a terminal; its foreground processes get SIGWINCH. Raises OSError and OverflowError."""
    size = b"".join(number.to_bytes(2, sys.byteorder) for number in (rows, columns, 0, 0))
    fcntl.ioctl(fd, termios.TIOCSWINSZ, size)


class OutputRing:
    """The last RING_BYTES of a stream, found by their offsets in it."""

    def __init__(self) -> None:
        self._data = bytearray()
        self.end = 0

    def append(self, data: bytes) -> None:
        self._data += data
        self.end += len(data)
        del self._data[:-RING_BYTES]

    def clamp_offset(self, offset: int) -> int:
        """Return the nearest offset from which the output is kept."""
        return min(max(offset, self.end - len(self._data)), self.end)

    def read(self, offset: int, limit: int) -> bytes:
        start = offset - (self.end - len(self._data))
        return bytes(self._data[start : start + limit])


class _Client:
    """Connection to a terminal, and how much of the output it was sent and has acknowledged."""

    def __init__(self, connection: Connection, offset: int) -> None:
        self.connection, self.sent = connection, offset
        self.acknowledged: int | None = None  # until its first acknowledgement, what was sent counts

    def is_behind(self, end: int) -> bool:
        taken = self.sent if self.acknowledged is None else min(self.sent, self.acknowledged)
        return end - taken >= WINDOW_BYTES


class Terminal:
    """Program on a pseudo-terminal with at most one client; a new one displaces the one before.

    Without a client it ends after `grace` seconds, also one whose program has ended: a client that read the exit code
    may be gone before a person saw it. `ended` is done when it is gone.
    """

    def __init__(self, child: ChildProcess, grace: float) -> None:
        self.id = os.urandom(16).hex()
        self.ended = Future[None]()
        self.detached_at = 0.0
        self._child, self._grace, self._fd = child, grace, child.stdin
        self._ring, self._input = OutputRing(), bytearray()
        self.exit_code: int | None = None
        self.client: _Client | None = None
        self._expiry: Timer | None = None
        self._changed = Future[None]()
        create_background_task(self._read_output())

    async def serve(self, connection: Connection, offset: int) -> None:
        """Serve a client from an offset of the output until the program ends or the client is gone or displaced."""
        client = _Client(connection, self._ring.clamp_offset(offset))
        self._attach(client)
        try:
            await connection.send_reply(session=self.id, offset=client.sent)
            await self._serve_client(client)
        finally:
            self._detach(client)

    def resize(self, columns: int, rows: int) -> None:
        if self._fd >= 0:
            set_window_size(self._fd, columns, rows)

    async def end(self) -> None:
        """Hang up, so that a shell saves its history, then kill all its processes; after its end, leave the others."""
        if not self._child.ended.done():
            self._child.signal(signal.SIGHUP)
            self._child.signal(signal.SIGCONT)
            await wait_until_done(self._child.ended, seconds=HANGUP_SECONDS)
            await self._child.kill()
        self.ended.set_result(None)

    def _attach(self, client: _Client) -> None:
        if self._expiry:
            EventLoop.running.cancel_timer(self._expiry)
            self._expiry = None
        self.client = client
        self._notify()

    def _detach(self, client: _Client) -> None:
        if self.client is client:
            self.client, self.detached_at = None, monotonic()
            if not self.ended.done():
                self._expiry = EventLoop.running.call_later(self._grace, lambda: create_background_task(self.end()))
            self._notify()

    def _notify(self) -> None:
        changed, self._changed = self._changed, Future[None]()
        changed.set_result(None)

    async def _serve_client(self, client: _Client) -> None:
        sender, receiver = CoroutineTask(self._send_output(client)), CoroutineTask(self._receive_messages(client))
        try:
            await wait_until_done(sender, receiver, first=True)
            if self.client is not client:
                await wait_until_done(sender, seconds=DRAIN_SECONDS)
                if not sender.done():  # the end of its frame can no longer be sent
                    client.connection.sock.shutdown(socket.SHUT_RDWR)
                raise RequestRefused("displaced", "another client has taken the terminal")
            if sender.done():
                sender.result()
                with TimeLimit(DRAIN_SECONDS):
                    await client.connection.send_end(code=self.exit_code)
                await wait_until_done(receiver, seconds=DRAIN_SECONDS)  # a close with unread input loses the end
            else:
                receiver.result()
        finally:
            sender.cancel()
            receiver.cancel()
            await wait_until_done(sender, receiver)

    async def _read_output(self) -> None:
        child = self._child
        async for data in child.output(self._fd):
            self._ring.append(data)
            self._notify()
            await sleep_seconds(0)  # a program that never pauses must not occupy the loop
            while self.client and self.client.is_behind(self._ring.end):
                await self._changed
        self._input.clear()
        EventLoop.running.watch(self._fd, WRITE, None)
        self._notify()
        self.exit_code = await child.ended
        self._fd = -1
        child.close()
        self._notify()

    async def _send_output(self, client: _Client) -> None:
        """Send output until its end, or until another client has taken the terminal."""
        while self.client is client:
            if data := self._ring.read(client.sent, FRAME_BYTES):
                await client.connection.send_frame(b"o", data)
                client.sent += len(data)
                self._notify()
            elif self.exit_code is not None:
                return
            else:
                await self._changed

    async def _receive_messages(self, client: _Client) -> None:
        with suppress(ConnectionError):
            while True:
                kind, data = await client.connection.read_frame()
                if kind == b"i":
                    await self._write_input(data, client.connection)
                elif kind == b"a":
                    client.acknowledged = int.from_bytes(data)
                    self._notify()
                elif kind == b"r":
                    self.resize(int.from_bytes(data[:2]), int.from_bytes(data[2:]))
                elif kind == b"s":
                    self._send_signal(SIGNALS[data.decode()])

    def _send_signal(self, number: int) -> None:
        """Send a signal to the foreground process group."""
        with suppress(OSError):  # there is none
            if self._fd >= 0 and (group := os.tcgetpgrp(self._fd)) > 1:
                os.killpg(group, number)

    async def _write_input(self, data: bytes, connection: Connection) -> None:
        """Pass input to the program; return when little of it is unread. Raises ConnectionResetError."""
        if self._fd >= 0:
            self._input += data
            self._flush_input()
        while len(self._input) > INPUT_BYTES:
            await wait_until_done(self._changed, seconds=CHECK_SECONDS)
            if is_disconnected(connection.sock.fileno()):  # nothing else reads from the client meanwhile
                raise ConnectionResetError

    def _flush_input(self) -> None:
        try:
            del self._input[: os.write(self._fd, self._input)]
        except BlockingIOError:
            pass
        except OSError:
            self._input.clear()  # nothing has the terminal open
        EventLoop.running.watch(self._fd, WRITE, self._flush_input if self._input else None)
        self._notify()


class TerminalOperations:
    """Operations with their terminals; `spawn` starts the program of a request on both sides of a pseudo-terminal."""

    def __init__(self, spawn: Spawn) -> None:
        self._spawn = spawn
        self._terminals: dict[str, Terminal] = {}
        self.operations: dict[str, Callable[[Json, Connection], Awaitable[None]]] = {
            "open_terminal": self._open,
            "attach_terminal": self._attach,
        }

    async def _open(self, request: Json, connection: Connection) -> None:
        grace, columns, rows = float(request["grace"]), int(request["columns"]), int(request["rows"])
        await self._end_abandoned()
        ours, theirs = open_terminal_pair(columns, rows)
        try:
            child = self._spawn(request, (ours, theirs))
        except BaseException:
            os.close(ours)
            raise
        finally:
            os.close(theirs)
        terminal = Terminal(child, grace)
        self._terminals[terminal.id] = terminal
        terminal.ended.add_done_callback(lambda _: self._terminals.pop(terminal.id, None))
        await terminal.serve(connection, 0)

    async def _attach(self, request: Json, connection: Connection) -> None:
        if (terminal := self._terminals.get(request["session"])) is None:
            raise RequestRefused("noTerminal", "no such terminal runs")
        terminal.resize(int(request["columns"]), int(request["rows"]))
        await terminal.serve(connection, int(request["after"]))

    async def _end_abandoned(self) -> None:
        """End a terminal without a client if there are too many; one whose program has ended goes first."""
        while len(self._terminals) >= MAX_TERMINALS:
            abandoned = [terminal for terminal in self._terminals.values() if terminal.client is None]
            if not abandoned:
                raise RequestRefused("busy", "too many terminals are open")
            oldest = min(abandoned, key=lambda terminal: (terminal.exit_code is None, terminal.detached_at))
            del self._terminals[oldest.id]
            await oldest.end()
