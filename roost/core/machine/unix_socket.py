"""Unix stream sockets in the file system: listen at a path and connect to one, however long the path is.

The kernel takes addresses of 107 bytes; a longer path is reached through its folder's descriptor.
"""

import asyncio
import os
import socket
import stat
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import cast

from roost.core.periodic import Backoff

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]
StreamHandler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None] | None]

_ADDRESS_BYTES = 107
_BACKLOG = 1024
_RETRY_SECONDS = 0.005


def listen_unix(path: Path) -> socket.socket:
    """Return a non-blocking socket that listens at `path` with mode 0600 and replaces a former socket atomically.

    Raises OSError, FileExistsError when something other than a socket is there.
    """
    if _kind(path) not in {None, stat.S_IFSOCK}:
        raise FileExistsError(f"not a socket: {path}")
    fresh = path.with_name(f".{path.name}.new")
    with suppress(FileNotFoundError):
        fresh.unlink()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        with _address(fresh) as address:
            listener.bind(address)
        fresh.chmod(0o600)  # before listen, so that no client connects while the umask's mode applies
        listener.listen(_BACKLOG)
        fresh.rename(path)
    except BaseException:
        listener.close()
        raise
    return listener


async def serve_unix(listener: socket.socket, handler: StreamHandler) -> asyncio.Server:
    """Call `handler` for each stream that a socket from `listen_unix` accepts, and close the socket with the server."""
    try:
        return await asyncio.start_unix_server(handler, sock=listener, backlog=_BACKLOG)
    except BaseException:
        listener.close()
        raise


class DirectReader:
    """Reads a connection into memory of its own; a StreamReader copies what it receives four times.

    Nothing may be received before it is made. `aclose` leaves the connection open.
    """

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        writer.transport.pause_reading()  # type: ignore[attr-defined] - a connection is a full transport
        self._loop = asyncio.get_running_loop()
        self._socket = socket.socket(fileno=os.dup(writer.get_extra_info("socket").fileno()))
        self._socket.setblocking(False)

    async def readexactly(self, count: int) -> bytes:
        """Read as `StreamReader.readexactly` does. Raises IncompleteReadError and OSError."""
        data = bytearray(count)
        with memoryview(data) as view:
            size = 0
            while size < count:
                try:
                    received = self._socket.recv_into(view[size:])
                except BlockingIOError:
                    received = await self._loop.sock_recv_into(self._socket, view[size:])
                if not received:
                    raise asyncio.IncompleteReadError(bytes(view[:size]), count)
                size += received
        return cast("bytes", data)  # which nothing changes any more

    async def aclose(self) -> None:
        self._socket.close()


async def connect_unix(path: Path) -> Stream:
    """Connect to the socket at `path`. Raises OSError; waits while the backlog is full, so set a deadline."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        with _address(path) as address:
            await _reach(sock, address)
        return await asyncio.open_unix_connection(sock=sock)
    except BaseException:
        sock.close()
        raise


async def _reach(sock: socket.socket, address: str) -> None:
    # Not `loop.sock_connect`, which mistakes the EAGAIN of a full backlog for a connection in progress.
    backoff = Backoff(_RETRY_SECONDS)
    while True:
        try:
            return sock.connect(address)
        except BlockingIOError:
            await backoff.pause()


def _kind(path: Path) -> int | None:
    try:
        return stat.S_IFMT(path.lstat().st_mode)
    except FileNotFoundError:
        return None


@contextmanager
def _address(path: Path) -> Generator[str]:
    if len(os.fsencode(path)) <= _ADDRESS_BYTES:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
