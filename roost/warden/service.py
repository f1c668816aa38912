"""The warden itself: it serves the requests of the server, leads loopback ports to the server's sockets, and ends all
that runs when it is told to end. It trusts the server that connects to it, and nothing that lives in the container.
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

from .command import converse
from .files import AtomicFile, entries, open_file, open_under
from .process_logs import LogFollower, ProcessLogs
from .processes import ChildProcess, ProcessSupervisor, sweep
from .protocol import CHUNK, Connection, Json, RequestRefused, some
from .streams import bind, reach, serve, splice
from .transparent_proxy import TransparentProxy
from .watched_process import WatchedProcess

CONNECTIONS, DIALS, EXECS, WATCHED, RELAYED = 512, 384, 64, 64, 512
REQUEST_SECONDS, STOP_SECONDS = 10.0, 3.0
NAME = re.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 4, 36

ERRNO_CODES = {
    **dict.fromkeys((errno.ENOENT, errno.ENOTDIR), "fileMissing"),
    **dict.fromkeys((errno.EISDIR, errno.ENXIO), "notAFile"),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENAMETOOLONG, errno.EROFS), "pathRefused"),
    errno.EFBIG: "fileTooLarge",
    errno.EAGAIN: "busy",  # somebody holds a lease on the file
}


def main(config: str) -> None:
    """Run until SIGTERM. Whoever lives in the container has our uid, so it may neither trace us nor read our memory."""
    prctl = ctypes.CDLL(None).prctl
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    os.umask(0o022)
    for fd in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208 - pathlib is not loaded here
        with suppress(OSError):
            os.set_inheritable(fd, fd <= 2)
    asyncio.run(WardenService(json.loads(config)).run())


class WardenService:
    """Each operation replies, or raises RequestRefused or OSError."""

    def __init__(self, config: Json) -> None:
        self._config, self._born = config, time.monotonic()
        self._roots: dict[str, str] = {"workspace": config["workspace"], "home": config["home"]}
        self._supervisor = ProcessSupervisor(config.get("env") or {})
        self._logs = ProcessLogs(config["home"])
        self._watched: dict[str, WatchedProcess] = {}
        self._execs = self._dials = 0
        self._operations: dict[str, Callable[[Json, Connection], Awaitable[None]]] = {
            "ping": self._ping, "dial": self._dial, "exec": self._exec,
            "list": self._list, "read": self._read, "write": self._write,
            "start": self._start, "stop": self._stop, "processes": self._processes,
            "logs": self._last_logs, "follow": self._follow,
        }  # fmt: skip

    async def run(self) -> None:
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        loop.set_default_executor(ThreadPoolExecutor(4))
        loop.set_exception_handler(lambda _, told: self._logs.note(f"{told['message']}: {told.get('exception')!r}"))
        loop.add_signal_handler(signal.SIGCHLD, self._supervisor.reap)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        jobs = [serve(_inherited(self._config["listen_fd"]), CONNECTIONS, self._attend)]
        for port, path in self._config.get("relays", {}).items():
            if listener := await bind("127.0.0.1", int(port), self._logs.note):
                jobs.append(serve(listener, RELAYED, partial(_relay, path)))
        if proxy := self._config.get("egress"):
            jobs.append(TransparentProxy(proxy, self._logs.note).run())
        tasks = [asyncio.create_task(job) for job in jobs]
        await stop.wait()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*(process.stop(STOP_SECONDS) for process in self._watched.values()))
        await sweep(os.getpid(), None)

    async def _attend(self, sock: socket.socket) -> None:
        connection = Connection(sock)
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                ask = await connection.request()
            await self._operations[ask["op"]](ask, connection)
        except RequestRefused as problem:
            await connection.fail(problem.code, str(problem))
        except (LookupError, TypeError, ValueError, ArithmeticError, RecursionError) as problem:
            await connection.fail("badRequest", repr(problem))
        except OSError as problem:
            await connection.fail(ERRNO_CODES.get(problem.errno or 0, "failed"), problem.strerror or repr(problem))

    async def _ping(self, _: Json, connection: Connection) -> None:
        await connection.reply(pid=os.getpid(), uptime=time.monotonic() - self._born)

    async def _dial(self, ask: Json, connection: Connection) -> None:
        if self._dials >= DIALS:
            raise RequestRefused("busy", "too many open streams")
        with await _loopback(int(ask["port"])) as out:
            self._dials += 1
            try:
                await connection.reply()
                await splice(connection.sock, out)
            finally:
                self._dials -= 1

    async def _list(self, ask: Json, connection: Connection) -> None:
        found = await asyncio.to_thread(entries, self._roots[ask["root"]], ask["path"])
        await connection.reply()
        await connection.items(found)
        await connection.finish()

    async def _read(self, ask: Json, connection: Connection) -> None:
        left = int(ask["limit"])
        fd = await asyncio.to_thread(open_file, self._roots[ask["root"]], ask["path"], left)
        try:
            await connection.reply()
            while data := await asyncio.to_thread(os.read, fd, min(left + 1, CHUNK)):
                left -= len(data)
                if left < 0:
                    raise RequestRefused("fileTooLarge", "the file grew beyond the limit")
                await connection.frame(b"d", data)
            await connection.finish()
        finally:
            os.close(fd)

    async def _write(self, ask: Json, connection: Connection) -> None:
        draft = await asyncio.to_thread(AtomicFile, self._roots[ask["root"]], ask["path"], int(ask["mode"]))
        try:
            await connection.reply()
            await _receive(draft, connection, int(ask["size"]))
            await asyncio.to_thread(draft.commit)
        finally:
            await asyncio.to_thread(draft.close)
        await connection.finish()

    async def _exec(self, ask: Json, connection: Connection) -> None:
        if self._execs >= EXECS:
            raise RequestRefused("busy", "too many commands run")
        seconds, limit, stdin = float(ask["timeout"]), ask.get("limit"), bool(ask["stdin"])
        child = self._spawn(ask, ask.get("cwd"), split=True)
        self._execs += 1
        try:
            if not stdin:
                child.close_stdin()
            await connection.reply(pid=child.pid)
            await converse(child, connection, seconds, limit)
        finally:
            if not child.ended.done():  # the client left before it was told that the command runs
                await child.kill()
            self._execs -= 1
            child.close()

    def _spawn(self, ask: Json, cwd: str | None, *, split: bool) -> ChildProcess:
        root = self._roots["workspace"]
        inside = "." if cwd in {None, root} else str(cwd).removeprefix(f"{root}/")
        try:
            folder = open_under(root, inside)
            try:
                return self._supervisor.spawn(ask["argv"], ask.get("env") or {}, folder, split=split)
            finally:
                os.close(folder)
        except (OSError, ValueError, IndexError, RequestRefused) as problem:
            raise RequestRefused("execRefused", str(problem)) from problem

    async def _start(self, ask: Json, connection: Connection) -> None:
        name = ask["name"]
        if not NAME.fullmatch(name) or name == "warden":
            raise RequestRefused("badRequest", "no process can have that name")
        former = self._watched.get(name)
        if former and former.state != "exited":
            raise RequestRefused("running", f"{name} is running")
        if former is None and len(self._watched) >= WATCHED:
            raise RequestRefused("busy", "too many processes are watched")
        start = partial(self._spawn, ask, None, split=False)
        self._watched[name] = WatchedProcess(start, self._logs.of(name), restart=bool(ask["restart"]))
        await connection.reply()

    async def _stop(self, ask: Json, connection: Connection) -> None:
        if process := self._watched.get(ask["name"]):
            await process.stop(float(ask["grace"]))
        await connection.reply()

    async def _processes(self, _: Json, connection: Connection) -> None:
        await connection.reply(processes={name: process.view() for name, process in self._watched.items()})

    async def _last_logs(self, ask: Json, connection: Connection) -> None:
        lines = self._logs.last(ask.get("source"), int(ask["limit"]))
        await connection.reply()
        await connection.items(lines)
        await connection.finish()

    async def _follow(self, ask: Json, connection: Connection) -> None:
        """Until the client goes away, or is let go because it lags. `last` lines come first, none lost in between."""
        task = asyncio.current_task()
        assert task is not None
        source = ask.get("source")
        lines = self._logs.last(source, int(ask.get("last", 0)))
        follower = LogFollower(source, task.cancel)
        gone = asyncio.create_task(_until_gone(connection.sock, task))
        self._logs.followers.add(follower)
        try:
            await connection.reply()
            await connection.items(lines)
            while True:
                await connection.items([await follower.lines.get()])
        finally:
            self._logs.followers.discard(follower)
            gone.cancel()


def _inherited(fd: int) -> socket.socket:
    listener = socket.socket(fileno=fd)
    listener.setblocking(False)
    return listener


async def _relay(path: str, sock: socket.socket) -> None:
    with await reach(socket.AF_UNIX, path) as out:
        await splice(sock, out)


async def _loopback(port: int) -> socket.socket:
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        with suppress(OSError, OverflowError):
            return await reach(family, (host, port))
    raise RequestRefused("dialRefused", f"nothing listens on port {port}")


async def _receive(draft: AtomicFile, connection: Connection, left: int) -> None:
    """After a problem the rest is taken and dropped, so that the client is there to read the answer."""
    problem: OSError | None = None
    while left > 0:
        data = await some(connection.sock, left)
        left -= len(data)
        if problem is None:
            try:
                await asyncio.to_thread(draft.write, data)
            except OSError as error:
                problem = error
    if problem:
        raise problem


async def _until_gone(sock: socket.socket, task: "asyncio.Task[object]") -> None:
    with suppress(OSError):
        await asyncio.get_running_loop().sock_recv(sock, 1)
    task.cancel()
