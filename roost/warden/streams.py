"""Byte streams: accept, connect, and copy in both directions with backpressure and half-close."""

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from .command import is_disconnected

CHUNK_BYTES = 256 * 1024
BACKLOG = 128
BIND_SECONDS, BIND_RETRY_SECONDS = 5.0, 0.02
CHECK_SECONDS = 5.0

SocketHandler = Callable[[socket.socket], Awaitable[None]]


async def serve_listener(listener: socket.socket, limit: int, handle: SocketHandler) -> None:
    """Handle each connection in its own task, at most `limit` at a time; further ones are closed at once."""
    tasks: set[asyncio.Task[None]] = set()
    while True:
        try:
            sock, _ = await asyncio.get_running_loop().sock_accept(listener)
        except OSError:  # out of descriptors
            await asyncio.sleep(BIND_RETRY_SECONDS)
            continue
        if len(tasks) >= limit:
            sock.close()
            continue
        task = asyncio.create_task(_handle_socket(sock, handle))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


async def _handle_socket(sock: socket.socket, handle: SocketHandler) -> None:
    with sock, suppress(OSError, TimeoutError):
        await handle(sock)


async def bind_port(
    host: str, port: int, log_message: Callable[[str], None], kind: socket.SocketKind = socket.SOCK_STREAM
) -> socket.socket | None:
    """Return a socket at a port, or log why there is none; retries, because the runtime allows low ports only later."""
    sock = socket.socket(socket.AF_INET, kind | socket.SOCK_NONBLOCK)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    deadline = time.monotonic() + BIND_SECONDS
    while True:
        try:
            sock.bind((host, port))
            if kind is socket.SOCK_STREAM:
                sock.listen(BACKLOG)
            return sock
        except OSError as problem:
            if not isinstance(problem, PermissionError) or time.monotonic() > deadline:
                sock.close()
                log_message(f"port {port} is not served: {problem.strerror}")
                return None
        await asyncio.sleep(BIND_RETRY_SECONDS)


async def connect_socket(family: socket.AddressFamily, address: str | tuple[str, int]) -> socket.socket:
    """Return a connected socket. Raises OSError."""
    sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        await asyncio.get_running_loop().sock_connect(sock, address)
    except BaseException:
        sock.close()
        raise
    return sock


async def splice_sockets(one: socket.socket, two: socket.socket) -> None:
    """Copy in both directions until both have ended or a peer is gone. The caller closes the sockets."""
    for sock in (one, two):
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    pumps = [_CopyPump(one, two), _CopyPump(two, one)]
    try:
        while running := {pump.ended for pump in pumps if not pump.ended.done()}:
            timeout = CHECK_SECONDS if len(running) == 1 else None
            await asyncio.wait(running, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            ended = [pump for pump in pumps if pump.ended.done()]
            if any(not pump.ended.result() or is_disconnected(pump.source.fileno()) for pump in ended):
                return  # a peer that only finished sending still receives
    finally:
        for pump in pumps:
            pump.close()


class _CopyPump:
    """Copies one direction as fast as the target accepts, and passes the end on."""

    def __init__(self, source: socket.socket, target: socket.socket) -> None:
        self.source, self._target, self._rest = source, target, b""
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[bool] = self._loop.create_future()  # False: a socket failed
        self._loop.add_reader(source, self._read)

    def close(self, *, ok: bool = True) -> None:
        if not self.ended.done():
            self.ended.set_result(ok)
            self._loop.remove_reader(self.source)
            self._loop.remove_writer(self._target)

    def _read(self) -> None:
        try:
            self._rest = self.source.recv(CHUNK_BYTES)
            if self._rest:
                self._write()
            else:
                self._target.shutdown(socket.SHUT_WR)
                self.close()
        except BlockingIOError:
            return
        except OSError:
            self.close(ok=False)

    def _write(self) -> None:
        try:
            self._rest = self._rest[self._target.send(self._rest) :]
        except BlockingIOError:
            pass
        except OSError:
            self.close(ok=False)
            return
        if self._rest:
            self._loop.remove_reader(self.source)
            self._loop.add_writer(self._target, self._write)
        elif self._loop.remove_writer(self._target):
            self._loop.add_reader(self.source, self._read)
