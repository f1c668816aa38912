"""Run the application on a port: one server per data folder, a clean stop on a signal."""

import asyncio
import contextlib
import ctypes
import errno
import fcntl
import os
import resource
import signal
import socket
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp
from uvicorn import Config, Server
from uvicorn._types import ASGISendEvent
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from roost.core.machine.unix_socket import Stream, listen_unix
from roost.core.problem import ResourceConflict, ServiceUnavailable
from roost.drivers.runtime.peer_contract import PeerCall, PeerFailed
from roost.drivers.tls_proxy.contract import TlsListeners
from roost.web.websocket import DRAIN_SECONDS

MESSAGE_LIMIT = 16 * 1024
_DRAIN_TIMEOUT = 10.0  # seconds in which a slow client must receive the buffered data, about 64 KiB at most


class BoundedWebSocket(WebSocketsSansIOProtocol):
    """WebSocket protocol of uvicorn with bounded buffers in both directions."""

    stream: Stream | None = None
    _deadline: asyncio.TimerHandle | None = None

    async def send(self, message: ASGISendEvent) -> None:
        await super().send(message)
        if message["type"] == "websocket.http.response.body":
            self.handshake_complete = True  # a rejection is complete, too, and not an error to log

    def pause_writing(self) -> None:
        super().pause_writing()
        seconds = self.scope.get("state", {}).get(DRAIN_SECONDS, _DRAIN_TIMEOUT)
        self._set_deadline(self.loop.call_later(seconds, self.transport.abort))

    def resume_writing(self) -> None:
        self._set_deadline(None)
        super().resume_writing()

    def keepalive_timeout(self) -> None:
        if self.read_paused:  # the application has not taken the last message, so no answer to the ping was read
            self.pending_ping_payload = None
            self.schedule_ping()
        else:
            super().keepalive_timeout()

    def connection_lost(self, exc: Exception | None) -> None:
        self._set_deadline(None)
        super().connection_lost(exc)

    def _set_deadline(self, deadline: asyncio.TimerHandle | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = deadline


_BACKLOG = 2048
_CAP_AMBIENT, _CAP_AMBIENT_CLEAR_ALL = 47, 4  # linux/prctl.h
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


def is_data_folder_locked(folder: Path) -> bool:
    try:
        with lock_data_folder(folder):
            return False
    except ServerAlreadyRunning:
        return True


def open_listener(host: str, port: int, advice: str = "Choose another with --port or ROOST_PORT.") -> socket.socket:
    """Open a listening socket; port 0 takes a free one. Raises CannotListen, with advice if the port is the reason."""
    listener = _bind(host, port, socket.SOCK_STREAM, advice)
    listener.listen(_BACKLOG)
    return listener


def open_listeners(host: str, port: int, agent_ports: range | None) -> Sequence[socket.socket]:
    """Open the listening socket of the server and those of its agents. Raises CannotListen."""
    with contextlib.ExitStack() as stack:
        listeners = [stack.enter_context(open_listener(host, port))]
        advice = "Choose other ports with ROOST_AGENT_PORTS."
        agents = (open_listener(host, agent_port, advice) for agent_port in agent_ports or ())
        listeners += map(stack.enter_context, agents)
        stack.pop_all()
        return listeners


def open_tls_listeners(host: str, port: int, http_port: int) -> TlsListeners:
    """Open the sockets of a TLS proxy. Raises CannotListen, which says how a plain user gets a low port."""
    if host == "::" and not socket.has_dualstack_ipv6():
        host = "0.0.0.0"  # noqa: S104 - the operator asked for all addresses
    with contextlib.ExitStack() as opened:
        https = opened.enter_context(open_listener(host, port, _tls_advice("tls_port")))
        quic = opened.enter_context(_bind(host, https.getsockname()[1], socket.SOCK_DGRAM, _tls_advice("tls_port")))
        http = opened.enter_context(open_listener(host, http_port, _tls_advice("tls_http_port")))
        opened.pop_all()
        return TlsListeners(https, quic, http)


def clear_ambient_capabilities() -> None:
    """Keep what a systemd unit gave this thread, like the right to bind low ports, from the programs that it starts.

    bwrap refuses to run with any capability.
    """
    ctypes.CDLL(None).prctl(_CAP_AMBIENT, _CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)


def _tls_advice(setting: str) -> str:
    return (
        f"Stop the other program there, or set {setting} and let your router forward the public port to it. "
        "A plain user needs the right to listen below 1024: AmbientCapabilities=CAP_NET_BIND_SERVICE in a systemd "
        "unit, or sysctl net.ipv4.ip_unprivileged_port_start=80 (docs/guides/internet.md)."
    )


def _bind(host: str, port: int, kind: socket.SocketKind, advice: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    protocol = socket.IPPROTO_TCP if kind is socket.SOCK_STREAM else socket.IPPROTO_UDP
    bound = socket.socket(family, kind, protocol)  # explicit, else asyncio keeps Nagle's algorithm on
    try:
        if kind is socket.SOCK_STREAM:  # several UDP sockets could share the port with it
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if host == "::":
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        hint = f" {advice}" if error.errno in (errno.EADDRINUSE, errno.EACCES) else ""
        raise CannotListen(f"Cannot listen on {host} port {port}: {error.strerror}.{hint}") from None
    return bound


class HttpServer(Server):
    """uvicorn's server without its signal handlers; its caller decides when it stops."""

    def __init__(self, app: ASGIApp, protocol: type[asyncio.Protocol], proxy_socket: Path | None = None) -> None:
        """`proxy_socket` is a path at which the server listens, too, for a proxy of its own."""
        self._proxy_socket = proxy_socket
        self._has_started = asyncio.Event()
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

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._has_started.set()
        if self._proxy_socket is not None:
            listener = listen_unix(self._proxy_socket)
            loop = asyncio.get_running_loop()
            self.servers.append(await loop.create_unix_server(self._create_protocol, sock=listener, backlog=_BACKLOG))

    async def serve_peer(self, call: PeerCall) -> bool:
        """Serve the requests that another server passes on (`PeerHandler`). Raises PeerFailed."""
        await self._has_started.wait()  # it may have taken the agent already; the other server waits some seconds
        if self.should_exit:
            raise PeerFailed("It stops")
        protocol: Any = self._create_protocol()
        protocol.is_peer, protocol.stream = True, call.stream
        call.accept()
        transport = call.stream[1].transport
        transport.set_protocol(protocol)  # nothing has been read yet: the caller waits
        protocol.connection_made(transport)
        return True

    def _create_protocol(self) -> asyncio.Protocol:
        protocol_class: Any = self.config.http_protocol_class
        return protocol_class(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)

    async def run_on(
        self,
        listeners: Sequence[socket.socket],
        stop: asyncio.Event,
        leave: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        """Serve until `stop` is set and `leave` has returned; then connections get 5 s to end."""

        async def watch() -> None:
            await stop.wait()
            if leave is not None:
                await leave()
            self.should_exit = True

        raise_descriptor_limit()
        watcher = asyncio.create_task(watch())
        try:
            await self.serve(sockets=list(listeners))
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
