"""Service of the warden: serves requests of the server, relays loopback ports to its sockets, and stops all processes.

It trusts the server that connects to it, and nothing inside the container.
"""

import asyncio
import ctypes
import errno
import json
import os
import re
import signal
import socket
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

from .command import serve_command
from .files import AtomicFile, list_entries, open_file, open_under
from .process_logs import LogFollower, ProcessLogs
from .processes import ChildProcess, ProcessSpawner, kill_tree
from .protocol import CHUNK_BYTES, Connection, Json, RequestRefused, receive_some
from .streams import bind_port, connect_socket, serve_listener, splice_sockets
from .supervised_process import SupervisedProcess
from .transparent_proxy import TransparentProxy

MAX_CONNECTIONS, MAX_DIALS, MAX_EXECS, MAX_SUPERVISED, MAX_RELAYED = 512, 384, 64, 64, 512
REQUEST_SECONDS, STOP_SECONDS = 10.0, 3.0
NAME = re.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 4, 36

ERRNO_CODES = {
    **dict.fromkeys((errno.ENOENT, errno.ENOTDIR), "fileMissing"),
    **dict.fromkeys((errno.EISDIR, errno.ENXIO), "notAFile"),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENAMETOOLONG, errno.EROFS), "pathRefused"),
    errno.EFBIG: "fileTooLarge",
    errno.EAGAIN: "busy",  # a process holds a lease on the file
}


def main(config: str) -> None:
    """Run until SIGTERM; deny programs of the container, which have our uid, to trace us or read our memory."""
    prctl = ctypes.CDLL(None).prctl
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    os.umask(0o022)
    for fd in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208 - pathlib is not loaded here
        with suppress(OSError):
            os.set_inheritable(fd, fd <= 2)
    asyncio.run(WardenService(json.loads(config)).run())


class WardenService:
    """Service with one method per operation, which replies or raises RequestRefused or OSError."""

    def __init__(self, config: Json) -> None:
        self._config, self._started = config, time.monotonic()
        self._roots: dict[str, str] = {"workspace": config["workspace"], "home": config["home"]}
        self._spawner = ProcessSpawner(config.get("env") or {})
        self._logs = ProcessLogs(config["home"])
        self._supervised: dict[str, SupervisedProcess] = {}
        self._execs = self._dials = 0
        self._operations: dict[str, Callable[[Json, Connection], Awaitable[None]]] = {
            "ping": self._ping, "dial": self._dial, "exec": self._exec,
            "list": self._list, "read": self._read, "write": self._write,
            "start": self._start, "stop": self._stop, "processes": self._processes,
            "logs": self._last_logs, "follow": self._follow,
        }  # fmt: skip

    async def run(self) -> None:
        loop, stop, log = asyncio.get_running_loop(), asyncio.Event(), self._logs.log_message
        loop.set_default_executor(ThreadPoolExecutor(4))
        loop.set_exception_handler(lambda _, context: log(f"{context['message']}: {context.get('exception')!r}"))
        loop.add_signal_handler(signal.SIGCHLD, self._spawner.reap)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        inherited = socket.socket(fileno=self._config["listen_fd"])
        inherited.setblocking(False)
        jobs = [serve_listener(inherited, MAX_CONNECTIONS, self._handle_connection)]
        for port, path in self._config.get("relays", {}).items():
            if listener := await bind_port("127.0.0.1", int(port), log):
                jobs.append(serve_listener(listener, MAX_RELAYED, partial(_relay, path)))
        if proxy := self._config.get("egress"):
            jobs.append(TransparentProxy(proxy, log).run())
        tasks = [asyncio.create_task(job) for job in jobs]
        await stop.wait()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*(process.stop(STOP_SECONDS) for process in self._supervised.values()))
        await kill_tree(os.getpid(), None)

    async def _handle_connection(self, sock: socket.socket) -> None:
        connection = Connection(sock)
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                request = await connection.read_request()
            await self._operations[request["op"]](request, connection)
        except RequestRefused as problem:
            await connection.send_error(problem.code, str(problem))
        except (LookupError, TypeError, ValueError, ArithmeticError, RecursionError) as problem:
            await connection.send_error("badRequest", repr(problem))
        except OSError as problem:
            code = ERRNO_CODES.get(problem.errno or 0, "failed")
            await connection.send_error(code, problem.strerror or repr(problem))

    async def _ping(self, _: Json, connection: Connection) -> None:
        await connection.send_reply(pid=os.getpid(), uptime=time.monotonic() - self._started)

    async def _dial(self, request: Json, connection: Connection) -> None:
        if self._dials >= MAX_DIALS:
            raise RequestRefused("busy", "too many open streams")
        with await _connect_loopback(int(request["port"])) as out:
            self._dials += 1
            try:
                await connection.send_reply()
                await splice_sockets(connection.sock, out)
            finally:
                self._dials -= 1

    async def _list(self, request: Json, connection: Connection) -> None:
        entries = await asyncio.to_thread(list_entries, self._roots[request["root"]], request["path"])
        await connection.send_reply()
        await connection.send_items(entries)
        await connection.send_end()

    async def _read(self, request: Json, connection: Connection) -> None:
        remaining = int(request["limit"])
        fd = await asyncio.to_thread(open_file, self._roots[request["root"]], request["path"], remaining)
        try:
            await connection.send_reply()
            while data := await asyncio.to_thread(os.read, fd, min(remaining + 1, CHUNK_BYTES)):
                remaining -= len(data)
                if remaining < 0:
                    raise RequestRefused("fileTooLarge", "the file grew beyond the limit")
                await connection.send_frame(b"d", data)
            await connection.send_end()
        finally:
            os.close(fd)

    async def _write(self, request: Json, connection: Connection) -> None:
        draft = await asyncio.to_thread(AtomicFile, self._roots[request["root"]], request["path"], int(request["mode"]))
        try:
            await connection.send_reply()
            await _receive_file(draft, connection, int(request["size"]))
            await asyncio.to_thread(draft.commit)
        finally:
            await asyncio.to_thread(draft.close)
        await connection.send_end()

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
            await serve_command(child, connection, seconds, limit)
        finally:
            if not child.ended.done():  # the client disconnected before the reply
                await child.kill()
            self._execs -= 1
            child.close()

    def _spawn(self, request: Json, cwd: str | None, *, split: bool) -> ChildProcess:
        root = self._roots["workspace"]
        inside = "." if cwd in {None, root} else str(cwd).removeprefix(f"{root}/")
        try:
            folder = open_under(root, inside)
            try:
                return self._spawner.spawn(request["argv"], request.get("env") or {}, folder, split=split)
            finally:
                os.close(folder)
        except (OSError, ValueError, IndexError, RequestRefused) as problem:
            raise RequestRefused("execRefused", str(problem)) from problem

    async def _start(self, request: Json, connection: Connection) -> None:
        name = request["name"]
        if not NAME.fullmatch(name) or name == "warden":
            raise RequestRefused("badRequest", "invalid name of a process")
        present = self._supervised.get(name)
        if present and present.state != "exited":
            raise RequestRefused("running", f"{name} is running")
        if present is None and len(self._supervised) >= MAX_SUPERVISED:
            raise RequestRefused("busy", "too many supervised processes")
        start = partial(self._spawn, request, None, split=False)
        self._supervised[name] = SupervisedProcess(start, self._logs.get_log(name), restart=bool(request["restart"]))
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
        task = asyncio.current_task()
        assert task is not None
        source = request.get("source")
        lines = self._logs.last_lines(source, int(request.get("last", 0)))
        follower = LogFollower(source, task.cancel)
        disconnect = asyncio.create_task(_cancel_on_disconnect(connection.sock, task))
        self._logs.followers.add(follower)
        try:
            await connection.send_reply()
            await connection.send_items(lines)
            while True:
                await connection.send_items([await follower.lines.get()])
        finally:
            self._logs.followers.discard(follower)
            disconnect.cancel()


async def _relay(path: str, sock: socket.socket) -> None:
    with await connect_socket(socket.AF_UNIX, path) as out:
        await splice_sockets(sock, out)


async def _connect_loopback(port: int) -> socket.socket:
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        with suppress(OSError, OverflowError):
            return await connect_socket(family, (host, port))
    raise RequestRefused("dialRefused", f"nothing listens on port {port}")


async def _receive_file(draft: AtomicFile, connection: Connection, size: int) -> None:
    """Write the content to the file; after an error, read the rest so that the client can read the reply."""
    failure: OSError | None = None
    while size > 0:
        data = await receive_some(connection.sock, size)
        size -= len(data)
        if failure is None:
            try:
                await asyncio.to_thread(draft.write, data)
            except OSError as error:
                failure = error
    if failure:
        raise failure


async def _cancel_on_disconnect(sock: socket.socket, task: "asyncio.Task[object]") -> None:
    with suppress(OSError):
        await asyncio.get_running_loop().sock_recv(sock, 1)
    task.cancel()
