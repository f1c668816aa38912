"""Run the application on a port: one server per data folder, a clean stop on a signal."""

import asyncio
import contextlib
import errno
import fcntl
import os
import resource
import signal
import socket
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from starlette.types import ASGIApp
from uvicorn import Config, Server

from roost.core.problem import ResourceConflict, ServiceUnavailable
from roost.hosts.websocket import MESSAGE_LIMIT, BoundedWebSocket

_BACKLOG = 2048
_GRACE_SECONDS = 5


class CannotListen(ServiceUnavailable):
    message = "The port cannot be opened"


class ServerAlreadyRunning(ResourceConflict):
    message = "Another server runs on this data folder"


@contextmanager
def lock_data_folder(folder: Path) -> Generator[None]:
    """Lock the data folder; the kernel releases the lock with the process. Raises ServerAlreadyRunning."""
    descriptor = os.open(folder / "server.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise ServerAlreadyRunning(f"Another server runs on {folder}") from None
    try:
        yield
    finally:
        os.close(descriptor)


def open_listener(host: str, port: int) -> socket.socket:
    """Open a listening socket; port 0 takes a free one. Raises CannotListen."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(
        family, socket.SOCK_STREAM, socket.IPPROTO_TCP
    )  # explicit, else asyncio keeps Nagle's algorithm on
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        hint = " Choose another with --port or ROOST_PORT." if error.errno in (errno.EADDRINUSE, errno.EACCES) else ""
        raise CannotListen(f"Cannot listen on {host} port {port}: {error.strerror}.{hint}") from None
    listener.listen(_BACKLOG)
    return listener


class HttpServer(Server):
    """uvicorn's server without its signal handlers; its caller decides when it stops."""

    def __init__(self, app: ASGIApp, protocol: type[asyncio.Protocol]) -> None:
        super().__init__(
            Config(
                app,
                http=protocol,
                ws=BoundedWebSocket,
                ws_max_size=MESSAGE_LIMIT,
                ws_per_message_deflate=False,  # it costs memory per connection, and CPU per message
                interface="asgi3",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                date_header=True,
                proxy_headers=False,
                timeout_keep_alive=75,
                timeout_graceful_shutdown=_GRACE_SECONDS,
            )
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def run_on(self, listener: socket.socket, stop: asyncio.Event) -> None:
        """Serve until `stop` is set; connections get 5 s to end."""

        async def watch() -> None:
            await stop.wait()
            self.should_exit = True

        raise_descriptor_limit()
        watcher = asyncio.create_task(watch())
        try:
            await self.serve(sockets=[listener])
        finally:
            watcher.cancel()


def raise_descriptor_limit() -> None:
    """Raise the limit of open files to the maximum: an agent may hold hundreds of connections, a client one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class StopRequest(asyncio.Event):
    """Request to stop the server; `signal` is the first signal that asked for it, None if none did."""

    signal: int | None = None


def stop_on_signals(stop: StopRequest) -> None:
    """Set `stop` on the first SIGINT, SIGTERM or SIGHUP (a closed terminal); a second SIGINT ends the process at once.

    An ignored SIGHUP stays ignored, as `nohup` asks; an ignored SIGINT does not, because scripts that start a server in
    the background, where shells ignore it, stop the server with it.
    """
    loop = asyncio.get_running_loop()

    def first(number: int) -> None:
        stop.signal = stop.signal or number
        stop.set()
        loop.remove_signal_handler(number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, first, number)
