"""Service of the warden: serves requests of the server, relays loopback ports to its sockets, and stops all processes.

It trusts the server that connects to it, and nothing inside the container.
"""

from __future__ import annotations

import errno
import resource
import time

from .event_loop import WRITE, CoroutineTask, EventLoop, Future
from .file_operations import FileOperations
from .files import open_under
from .light_imports import Socket, call_prctl, os, parse_json, signal, socket, suppress
from .processes import ProcessSpawner, kill_tree, set_limits
from .protocol import Connection, RequestRefused
from .streams import (
    bind_port,
    connect_socket,
    is_disconnected,
    listen_abstract,
    peer_uid,
    serve_listener,
    splice_sockets,
)
from .supervised_process import LogFollower, ProcessLogs, SupervisedProcess
from .transparent_proxy import DNS_PORT, PORTS, TransparentProxy
from .waiting import TimeLimit, create_background_task, gather_results, wait_until_done, wait_until_ready

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .bridge import WardenBridge
    from .processes import ChildProcess
    from .protocol import Json
    from .streams import SocketHandler
    from .terminal import TerminalOperations
    from .tree_operations import TreeOperations

# Fewer streams than connections, so that other requests are answered while all streams are in use.
MAX_CONNECTIONS, MAX_DIALS, MAX_EXECS, MAX_SUPERVISED, MAX_RELAYED = 512, 384, 64, 64, 512
MAX_CARRIERS = 64  # a client that reaches the port has five seconds to show the certificate
REQUEST_SECONDS, STOP_SECONDS, DRAIN_SECONDS, CHECK_SECONDS = 10.0, 3.0, 5.0, 1.0
TIMEOUT_EXIT_CODE = 124
NAME_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
MAX_NAME_CHARACTERS = 64
PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 4, 36


def main(config: str) -> None:
    """Run until SIGTERM; deny programs of the container, which have our uid, to trace us or read our memory."""
    call_prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    call_prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    os.umask(0o022)
    for fd in map(int, os.listdir("/proc/self/fd")):
        with suppress(OSError):
            os.set_inheritable(fd, fd <= 2)
    parsed = parse_json(config)
    set_limits(parsed.get("limits") or {})
    if parsed.get("delete_only"):  # every process inherits the limit, and none can raise it
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    service = WardenService(parsed)
    EventLoop(service.log_error).run(service.run())


class WardenService:
    """Service with one method per operation, which replies or raises RequestRefused or OSError."""

    def __init__(self, config: Json) -> None:
        self._config, self._started = config, time.monotonic()
        self._roots: dict[str, str] = {"workspace": config["workspace"], "home": config["home"]}
        self._spawner = ProcessSpawner(config.get("env") or {}, lowers_sessions=bool(config.get("lowers_sessions")))
        self._logs = ProcessLogs(config["home"])
        self._supervised: dict[str, SupervisedProcess] = {}
        self._trees: TreeOperations | None = None
        self._terminals: TerminalOperations | None = None
        self._bridges: list[WardenBridge] = []
        self._execs = self._dials = 0
        self._own_ports = {int(port) for port in config.get("relays", {})}
        if config.get("egress"):
            self._own_ports |= {DNS_PORT, *PORTS}
        bridge: Json = config.get("bridge") or {}
        if "port" in bridge:
            self._own_ports.add(int(bridge["port"]))
        self._operations: dict[str, Callable[[Json, Connection], Awaitable[None]]] = {
            "ping": self._ping, "dial": self._dial, "exec": self._exec,
            **FileOperations(self._roots).operations,
            **dict.fromkeys(("scan", "read_files", "apply", "watch"), self._tree_operation),
            **dict.fromkeys(("open_terminal", "attach_terminal"), self._terminal_operation),
            "start": self._start, "stop": self._stop, "processes": self._processes,
            "logs": self._last_logs, "follow": self._follow,
        }  # fmt: skip

    async def run(self) -> None:
        loop, stop, log = EventLoop.running, Future[None](), self._logs.log_message
        loop.on_signal(signal.SIGCHLD, self._spawner.reap)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.on_signal(number, lambda: stop.set_result(None))
        jobs = [self._serve_server()]
        for port, relay in self._config.get("relays", {}).items():
            if listener := await bind_port("127.0.0.1", int(port), log):
                jobs.append(serve_listener(listener, MAX_RELAYED, lambda sock, relay=relay: self._relay(relay, sock)))
        if proxy := self._config.get("egress"):
            jobs.append(TransparentProxy(lambda: self._connect_relay(proxy), log).run())
        tasks = [create_background_task(job) for job in jobs]
        await stop
        for task in tasks:
            task.cancel()
        await gather_results(*(process.stop(STOP_SECONDS) for process in self._supervised.values()))
        await kill_tree(os.getpid(), None)

    async def _serve_server(self) -> None:
        """Serve the server's connections, or where it cannot reach us, the carriers of its bridges."""
        bridge = self._config.get("bridge")
        listener = await self._open_listener(bridge)
        if listener and bridge:
            await serve_listener(listener, MAX_CARRIERS, self._make_carrier_handler(bridge))
        elif listener:
            await serve_listener(listener, MAX_CONNECTIONS, self._handle_connection)

    async def _open_listener(self, bridge: Json | None) -> Socket | None:
        if not bridge or "listen_fd" in self._config:
            return Socket(socket.AF_UNIX, fileno=self._config["listen_fd"])
        if "port" in bridge:
            return await bind_port("", int(bridge["port"]), self._logs.log_message)
        return listen_abstract(bridge["name"])

    def _make_carrier_handler(self, bridge: Json) -> SocketHandler:
        if "certificate" not in bridge:
            uid = os.getuid() if bridge["uid"] is None else int(bridge["uid"])
            return lambda sock: self._serve_local_carrier(sock, uid)
        from .tls import TlsSocket, make_tls_context

        context = make_tls_context(bridge["certificate"])

        async def serve_carrier(plain: Socket) -> None:
            with TlsSocket(plain, context) as sock:
                await sock.shake_hands()
                await self._serve_carrier(sock)

        return serve_carrier

    async def _serve_local_carrier(self, sock: Socket, uid: int) -> None:
        if peer_uid(sock) == uid:  # no program of the container
            await self._serve_carrier(sock)

    async def _serve_carrier(self, sock: Socket) -> None:
        from .bridge import WardenBridge  # most wardens have a socket

        bridge = WardenBridge(sock, self._handle_connection)
        self._bridges.append(bridge)
        try:
            await bridge.run()
        finally:
            self._bridges.remove(bridge)

    async def _connect_relay(self, relay: str) -> Socket:
        """Return a connection to a relay of the server: a socket's path, or its name on the bridge. Raises OSError."""
        if "bridge" not in self._config:
            return await connect_socket(socket.AF_UNIX, relay)
        if not self._bridges:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "there is no bridge to the server")
        return self._bridges[-1].open_relay(relay)  # the newest one is that of the server that has the agent now

    async def _relay(self, relay: str, sock: Socket) -> None:
        with await self._connect_relay(relay) as out:
            await splice_sockets(sock, out)

    def log_error(self, error: BaseException) -> None:
        self._logs.log_message(f"internal error: {error!r}")

    async def _handle_connection(self, sock: Socket) -> None:
        connection = Connection(sock)
        try:
            with TimeLimit(REQUEST_SECONDS):
                request = await connection.read_request()
            await self._operations[request["op"]](request, connection)
        except (
            RequestRefused,
            OSError,
            LookupError,
            TypeError,
            ValueError,
            ArithmeticError,
            RecursionError,
        ) as problem:
            await connection.send_problem(problem)

    async def _ping(self, _: Json, connection: Connection) -> None:
        await connection.send_reply(pid=os.getpid(), uptime=time.monotonic() - self._started)

    async def _dial(self, request: Json, connection: Connection) -> None:
        if self._dials >= MAX_DIALS:
            raise RequestRefused("busy", "too many open streams")
        port = int(request["port"])
        if port in self._own_ports:  # what enters the container must not leave it as the agent
            raise RequestRefused("dialRefused", f"port {port} is the warden's own")
        with await _connect_loopback(port) as out:
            self._dials += 1
            try:
                await connection.send_reply()
                await splice_sockets(connection.sock, out)
            finally:
                self._dials -= 1

    async def _exec(self, request: Json, connection: Connection) -> None:
        if self._execs >= MAX_EXECS:
            raise RequestRefused("busy", "too many commands are running")
        seconds, limit, stdin = float(request["timeout"]), request.get("limit"), bool(request["stdin"])
        child = self._spawn(request, request.get("cwd"), split=True)
        self._execs += 1
        try:
            if not stdin:
                child.close_stdin()
            await connection.send_reply(pid=child.pid)
            await _serve_command(child, connection, seconds, limit)
        finally:
            if not child.ended.done():  # the client disconnected before the reply
                await child.kill()
            self._execs -= 1
            child.close()

    def _spawn(self, request: Json, cwd: str | None, *, split: bool) -> ChildProcess:
        return self._start_in_workspace(
            cwd,
            lambda folder: self._spawner.spawn(request["argv"], request.get("env") or {}, folder, split=split),
        )

    def _spawn_on_terminal(self, request: Json, pair: tuple[int, int]) -> ChildProcess:
        return self._start_in_workspace(
            None,
            lambda folder: self._spawner.spawn_on_terminal(request["argv"], request.get("env") or {}, folder, pair),
        )

    def _start_in_workspace(self, cwd: str | None, start: Callable[[int], ChildProcess]) -> ChildProcess:
        """Open a folder of the workspace and start a process there. Raises RequestRefused."""
        root = self._roots["workspace"]
        inside = "." if cwd in {None, root} else str(cwd).removeprefix(f"{root}/")
        try:
            folder = open_under(root, inside)
            try:
                return start(folder)
            finally:
                os.close(folder)
        except (OSError, ValueError, IndexError, RequestRefused) as problem:
            raise RequestRefused("execRefused", str(problem)) from problem

    async def _tree_operation(self, request: Json, connection: Connection) -> None:
        if self._trees is None:
            from .tree_operations import TreeOperations  # most wardens never need its memory

            self._trees = TreeOperations(self._roots)
        await self._trees.operations[request["op"]](request, connection)

    async def _terminal_operation(self, request: Json, connection: Connection) -> None:
        if self._terminals is None:
            from .terminal import TerminalOperations  # as above

            self._terminals = TerminalOperations(self._spawn_on_terminal)
        await self._terminals.operations[request["op"]](request, connection)

    async def _start(self, request: Json, connection: Connection) -> None:
        name = request["name"]
        is_valid = 0 < len(name) <= MAX_NAME_CHARACTERS and name[0].isalnum() and NAME_CHARACTERS.issuperset(name)
        if not is_valid or name == "warden":
            raise RequestRefused("badRequest", "invalid name of a process")
        present = self._supervised.get(name)
        if present and present.state != "exited":
            raise RequestRefused("running", f"{name} is running")
        if present is None and len(self._supervised) >= MAX_SUPERVISED:
            raise RequestRefused("busy", "too many supervised processes")
        self._supervised[name] = SupervisedProcess(
            lambda: self._spawn(request, None, split=False), self._logs.get_log(name), restart=bool(request["restart"])
        )
        await connection.send_reply()

    async def _stop(self, request: Json, connection: Connection) -> None:
        if process := self._supervised.get(request["name"]):
            await process.stop(float(request["grace"]))
        await connection.send_reply()

    async def _processes(self, _: Json, connection: Connection) -> None:
        await connection.send_reply(processes={name: process.to_json() for name, process in self._supervised.items()})

    async def _last_logs(self, request: Json, connection: Connection) -> None:
        lines = self._logs.last_lines(request.get("source"), int(request["limit"]))
        await connection.send_reply()
        await connection.send_items(lines)
        await connection.send_end()

    async def _follow(self, request: Json, connection: Connection) -> None:
        """Send the `last` lines and all new ones until the client disconnects, or is disconnected because it lags."""
        await connection.serve_until_disconnect(self._send_logs(request, connection))

    async def _send_logs(self, request: Json, connection: Connection) -> None:
        task = EventLoop.running.current_task
        assert task is not None
        source = request.get("source")
        lines = self._logs.last_lines(source, int(request.get("last", 0)))
        follower = LogFollower(source, task.cancel)
        self._logs.followers.add(follower)
        try:
            await connection.send_reply()
            await connection.send_items(lines)
            while True:
                await connection.send_items(await follower.take_lines())
        finally:
            self._logs.followers.discard(follower)


async def _connect_loopback(port: int) -> Socket:
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        with suppress(OSError, OverflowError):
            return await connect_socket(family, (host, port))
    raise RequestRefused("dialRefused", f"nothing listens on port {port}")


async def _serve_command(child: ChildProcess, connection: Connection, seconds: float, limit: int | None) -> None:
    """Serve a running command until it ends; kill it after the timeout or when the client disconnects.

    A killed command leaves no process behind; one that ends by itself may leave background processes, as in a shell.
    Output beyond `limit` bytes per stream is dropped and reported as `truncated`.
    """
    output = CoroutineTask(_send_output(child, connection, limit))
    client = CoroutineTask(_receive_input(child, connection))
    try:
        await wait_until_done(output, client, seconds=seconds, first=True)
        timed_out = not output.done() and not client.done()
        if not output.done() or output.exception():
            await child.kill()
        if timed_out:
            await wait_until_done(output, seconds=DRAIN_SECONDS)  # send what it wrote before its end
        if output.done() and not output.exception() and not client.done():
            code = TIMEOUT_EXIT_CODE if timed_out else child.ended.result()
            with TimeLimit(DRAIN_SECONDS):
                await connection.send_end(code=code, timedOut=timed_out, truncated=output.result())
            await wait_until_done(client, seconds=DRAIN_SECONDS)  # a close with unread input would discard the reply
    finally:
        output.cancel()
        client.cancel()
        await wait_until_done(output, client)


async def _send_output(child: ChildProcess, connection: Connection, limit: int | None) -> bool:
    """Send all output, wait for the end of the process, and return whether output was dropped."""
    streams = zip(child.outputs, (b"o", b"e"), strict=True)
    dropped = await gather_results(*(_send_stream(child, fd, connection, kind, limit) for fd, kind in streams))
    await child.ended
    return any(dropped)


async def _send_stream(child: ChildProcess, fd: int, connection: Connection, kind: bytes, limit: int | None) -> bool:
    received = 0
    async for data in child.output(fd):
        kept = data if limit is None else data[: max(limit - received, 0)]
        received += len(data)
        if kept:
            await connection.send_frame(kind, kept)
    return limit is not None and received > limit


async def _receive_input(child: ChildProcess, connection: Connection) -> None:
    try:
        while True:
            kind, data = await connection.read_frame()
            if kind == b"i" and data:
                await _write_stdin(child, data, connection)
            elif kind == b"i":
                child.close_stdin()
    except ConnectionError:
        return


async def _write_stdin(child: ChildProcess, data: bytes, connection: Connection) -> None:
    while data and child.stdin >= 0:
        try:
            data = data[os.write(child.stdin, data) :]
        except BlockingIOError:
            try:
                with TimeLimit(CHECK_SECONDS):
                    await wait_until_ready(child.stdin, WRITE, child.ended)
            except TimeoutError:
                if is_disconnected(connection.sock.fileno()):  # nothing else reads from the client meanwhile
                    raise ConnectionResetError from None
        except BrokenPipeError:
            child.close_stdin()
