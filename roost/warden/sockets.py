"""Operations of non-blocking sockets that wait in a task."""

from __future__ import annotations

import errno

from .event_loop import READ, WRITE
from .light_imports import Socket
from .waiting import wait_until_ready

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")

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


async def accept_connection(listener: Socket) -> Socket:
    """Return the next connection. Raises OSError."""
    return await _retry(listener, READ, listener.accept_connection)


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
