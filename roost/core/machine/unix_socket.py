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


async def connect_unix(path: Path) -> Stream:
    """Connect to the socket at `path`. Raises OSError; waits while the backlog is full, so set a deadline."""
    sock = await open_unix_socket(path)
    try:
        return await asyncio.open_unix_connection(sock=sock)
    except BaseException:
        sock.close()
        raise


async def open_unix_socket(path: Path) -> socket.socket:
    """Return a socket that is connected to `path`; otherwise like `connect_unix`."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        with _address(path) as address:
            await _reach(sock, address)
    except BaseException:
        sock.close()
        raise
    return sock


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
