"""Byte streams: accept, connect, and copy both ways with backpressure and half-close. Callers bound their number."""

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from .command import hung_up

CHUNK = 256 * 1024
BACKLOG = 128
BIND_SECONDS, BIND_AGAIN = 5.0, 0.02
LOOK_SECONDS = 5.0

Handle = Callable[[socket.socket], Awaitable[None]]


async def serve(listener: socket.socket, most: int, handle: Handle) -> None:
    """Handle each connection in a task of its own, `most` at a time; those above that are closed at once."""
    tasks: set[asyncio.Task[None]] = set()
    while True:
        try:
            sock, _ = await asyncio.get_running_loop().sock_accept(listener)
        except OSError:  # out of descriptors for a moment
            await asyncio.sleep(BIND_AGAIN)
            continue
        if len(tasks) >= most:
            sock.close()
            continue
        task = asyncio.create_task(_attend(sock, handle))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


async def _attend(sock: socket.socket, handle: Handle) -> None:
    with sock, suppress(OSError, TimeoutError):
        await handle(sock)


async def bind(
    host: str, port: int, note: Callable[[str], None], kind: socket.SocketKind = socket.SOCK_STREAM
) -> socket.socket | None:
    """A socket at a port. The runtime opens the low ports a moment after the start, hence some tries."""
    sock = socket.socket(socket.AF_INET, kind | socket.SOCK_NONBLOCK)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    last = time.monotonic() + BIND_SECONDS
    while True:
        try:
            sock.bind((host, port))
            if kind is socket.SOCK_STREAM:
                sock.listen(BACKLOG)
            return sock
        except OSError as problem:
            if not isinstance(problem, PermissionError) or time.monotonic() > last:
                sock.close()
                note(f"port {port} is not served: {problem.strerror}")
                return None
        await asyncio.sleep(BIND_AGAIN)


async def reach(family: socket.AddressFamily, address: str | tuple[str, int]) -> socket.socket:
    """A connected socket. Raises OSError."""
    sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        await asyncio.get_running_loop().sock_connect(sock, address)
    except BaseException:
        sock.close()
        raise
    return sock


async def splice(one: socket.socket, two: socket.socket) -> None:
    """Copy both ways until both directions have ended or a side is gone. The caller closes the sockets."""
    for sock in (one, two):
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    pipes = [_CopyPump(one, two), _CopyPump(two, one)]
    try:
        while going := {pipe.ended for pipe in pipes if not pipe.ended.done()}:
            patience = LOOK_SECONDS if len(going) == 1 else None
            await asyncio.wait(going, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
            ended = [pipe for pipe in pipes if pipe.ended.done()]
            if any(not pipe.ended.result() or hung_up(pipe.source.fileno()) for pipe in ended):
                return  # one that only finished sending may still read, one that is gone does not
    finally:
        for pipe in pipes:
            pipe.close()


class _CopyPump:
    """One direction: reads only as fast as the other side takes, and passes the end on."""

    def __init__(self, source: socket.socket, target: socket.socket) -> None:
        self.source, self._target, self._rest = source, target, b""
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[bool] = self._loop.create_future()  # True: in order, False: a side is broken
        self._loop.add_reader(source, self._read)

    def close(self, *, well: bool = True) -> None:
        if not self.ended.done():
            self.ended.set_result(well)
            self._loop.remove_reader(self.source)
            self._loop.remove_writer(self._target)

    def _read(self) -> None:
        try:
            self._rest = self.source.recv(CHUNK)
            if self._rest:
                self._write()
            else:
                self._target.shutdown(socket.SHUT_WR)
                self.close()
        except BlockingIOError:
            return
        except OSError:
            self.close(well=False)

    def _write(self) -> None:
        try:
            self._rest = self._rest[self._target.send(self._rest) :]
        except BlockingIOError:
            pass
        except OSError:
            self.close(well=False)
            return
        if self._rest:
            self._loop.remove_reader(self.source)
            self._loop.add_writer(self._target, self._write)
        elif self._loop.remove_writer(self._target):
            self._loop.add_reader(self.source, self._read)
