"""Sockets in tasks: accept, connect, send, receive, and copy in both directions with backpressure and half-close."""

from __future__ import annotations

import errno
import select
import time

from .event_loop import READ, WRITE, EventLoop, Future
from .light_imports import Socket, socket, struct, suppress
from .waiting import create_background_task, sleep_seconds, wait_until_done, wait_until_ready

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any, TypeVar

    T = TypeVar("T")
    SocketHandler = Callable[[Socket], Coroutine[Any, Any, None]]

CHUNK_BYTES = 256 * 1024
BACKLOG = 128
CREDENTIALS = struct.Struct("3i")
BIND_SECONDS, BIND_RETRY_SECONDS = 5.0, 0.02
CHECK_SECONDS = 5.0

Address = str | tuple[str, int]  # of a Unix socket, or host and port


async def receive_chunk(sock: Socket, limit: int) -> bytes:
    """Receive up to `limit` bytes, none at the end. Raises OSError."""
    return await _retry(sock, READ, lambda: sock.recv(limit))


async def receive_datagram(sock: Socket, limit: int) -> tuple[bytes, Address]:
    """Return a datagram and its sender. Raises OSError."""
    return await _retry(sock, READ, lambda: sock.recvfrom(limit))


async def send_all(sock: Socket, *parts: bytes | memoryview) -> None:
    """Send all parts, without a copy of them. Raises OSError."""
    rest = [memoryview(part) for part in parts]
    while rest:
        sent = await _retry(sock, WRITE, lambda: sock.sendmsg(rest))
        while rest and sent >= len(rest[0]):
            sent -= len(rest.pop(0))
        if rest:
            rest[0] = rest[0][sent:]


async def connect_socket(family: int, address: Address) -> Socket:
    """Return a connected stream socket. Raises OSError."""
    sock = Socket(family)
    try:
        await _retry(sock, WRITE, lambda: _connect(sock, address))
    except BaseException:
        sock.close()
        raise
    return sock


def _connect(sock: Socket, address: Address) -> None:
    """Start to connect, or return the result of the connect that was started."""
    try:
        sock.connect(address)
    except BlockingIOError as problem:
        if problem.errno == errno.EAGAIN:  # the queue of a Unix socket is full, and no event tells when it is not
            raise ConnectionRefusedError(errno.ECONNREFUSED, "the listener is busy") from None
        raise
    except OSError as problem:
        if problem.errno != errno.EISCONN:
            raise


async def _retry(sock: Socket, event: int, call: Callable[[], T]) -> T:
    while True:
        try:
            return call()
        except BlockingIOError:
            await wait_until_ready(sock.fileno(), event)


async def serve_listener(listener: Socket, limit: int, handle: SocketHandler) -> None:
    """Handle each connection in its own task, at most `limit` at a time; further ones are closed at once."""
    served: set[Socket] = set()
    while True:
        try:
            sock = await _retry(listener, READ, listener.accept_connection)
        except OSError:  # out of descriptors
            await sleep_seconds(BIND_RETRY_SECONDS)
            continue
        if len(served) >= limit:
            sock.close()
            continue
        served.add(sock)
        create_background_task(_handle_socket(sock, handle, served))


async def _handle_socket(sock: Socket, handle: SocketHandler, served: set[Socket]) -> None:
    try:
        with sock, suppress(OSError):
            await handle(sock)
    finally:
        served.discard(sock)


def listen_abstract(name: str) -> Socket:
    """Return a listening socket with an abstract name, which no program of the container can replace."""
    listener = Socket(socket.AF_UNIX)
    listener.bind(f"\0{name}")
    listener.listen(BACKLOG)
    return listener


def peer_uid(sock: Socket) -> int:
    """Return the uid of the process that connected to us, as the kernel knows it (unix(7))."""
    return CREDENTIALS.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size))[1]


async def bind_port(
    host: str, port: int, log_message: Callable[[str], None], kind: int = socket.SOCK_STREAM
) -> Socket | None:
    """Return a socket at a port, or log why there is none; retries, because the runtime allows low ports only later.

    host: an address of IPv4, or "" for all addresses.
    """
    sock = Socket(socket.AF_INET, kind) if host else _make_socket_of_both(kind)
    host = "::" if sock.family == socket.AF_INET6 else host
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    deadline = time.monotonic() + BIND_SECONDS
    while True:
        try:
            sock.bind((host, port))
            if kind == socket.SOCK_STREAM:
                sock.listen(BACKLOG)
            return sock
        except OSError as problem:
            if not isinstance(problem, PermissionError) or time.monotonic() > deadline:
                sock.close()
                log_message(f"port {port} is not served: {problem.strerror}")
                return None
        await sleep_seconds(BIND_RETRY_SECONDS)


def _make_socket_of_both(kind: int) -> Socket:
    """Return a socket for IPv6 and IPv4, or for IPv4 where the kernel has no IPv6."""
    try:
        sock = Socket(socket.AF_INET6, kind)
    except OSError:
        return Socket(socket.AF_INET, kind)
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    return sock


async def splice_sockets(one: Socket, two: Socket) -> None:
    """Copy in both directions until both have ended or a peer is gone. The caller closes the sockets."""
    for sock in (one, two):
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    pumps = [_CopyPump(one, two), _CopyPump(two, one)]
    try:
        while running := {pump.ended for pump in pumps if not pump.ended.done()}:
            await wait_until_done(*running, seconds=CHECK_SECONDS if len(running) == 1 else None, first=True)
            ended = [pump for pump in pumps if pump.ended.done()]
            if any(not pump.ended.result() or is_disconnected(pump.source.fileno()) for pump in ended):
                return  # a peer that only finished sending still receives
    finally:
        for pump in pumps:
            pump.close()


class _CopyPump:
    """Copies one direction as fast as the target accepts, and passes the end on."""

    def __init__(self, source: Socket, target: Socket) -> None:
        self.source, self._target, self._rest = source, target, b""
        self.ended = Future[bool]()  # False: a socket failed
        self._watch_source(self._read)

    def close(self, *, ok: bool = True) -> None:
        if not self.ended.done():
            self.ended.set_result(ok)
            self._watch_source(None)
            self._watch_target(None)

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
            self._watch_source(None)
            self._watch_target(self._write)
        elif self._watch_target(None):
            self._watch_source(self._read)

    def _watch_source(self, callback: Callable[[], None] | None) -> bool:
        return EventLoop.running.watch(self.source.fileno(), READ, callback)

    def _watch_target(self, callback: Callable[[], None] | None) -> bool:
        return EventLoop.running.watch(self._target.fileno(), WRITE, callback)


def is_disconnected(fd: int) -> bool:
    """Return whether the peer closed both directions, and did not only finish sending."""
    poll = select.poll()
    poll.register(fd, 0)  # POLLHUP is always reported
    return bool(poll.poll(0))
