"""Processes of a container: started in sessions of their own, reaped, and ended with all that descends from them.

No asyncio subprocesses: pid 1 reaps every orphan, and two reapers would steal each other's exit codes.

A process is known by its session and by a mark that all its descendants inherit: the soft limit of real-time CPU, a
number that means nothing to an ordinary process. So those that call setsid, lose their parent or empty their
environment are found too.
"""

import asyncio
import errno
import os
import resource
import signal
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import suppress

READ = 256 * 1024
SWEEPS, SWEEP_SECONDS = 200, 0.01


class ChildProcess:
    """A process that leads a session; all that descends from it carries `mark`."""

    def __init__(self, pid: int, mark: int, fds: Sequence[int]) -> None:
        self.pid, self.mark = pid, mark
        self.stdin, *self.outputs = fds  # our ends, non-blocking; stdout, and stderr where it is apart
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()  # its exit code

    def signal(self, number: int) -> None:
        """To the whole process group."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def close_stdin(self) -> None:
        _close([self.stdin])
        self.stdin = -1

    def close(self) -> None:
        self.close_stdin()
        _close(self.outputs)
        self.outputs = []

    async def kill(self) -> None:
        """Kill it and its descendants, those in other sessions among them; returns when they are gone."""
        await sweep(self.pid, self.mark)
        await self.ended

    async def output(self, fd: int) -> AsyncGenerator[bytes, None]:
        """What arrives until the end. A background process that keeps the pipe open does not put the end off."""
        left = 4 * READ  # no pipe holds more: that is all which was written before the end
        while left > 0:
            over = self.ended.done()  # asked before the read, so that nothing written before the end is missed
            try:
                data = os.read(fd, READ)
            except BlockingIOError:
                if over:
                    return
                await usable(fd, self.ended)
                continue
            if not data:
                return
            left -= len(data) if over else 0
            yield data


class ProcessSupervisor:
    """Starts processes and reaps them and the orphans of the container. `reap` belongs to SIGCHLD."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = dict(env)
        self._children: dict[int, ChildProcess] = {}
        self._most = resource.getrlimit(resource.RLIMIT_RTTIME)[1]
        self._mark = self._most
        if self._most == resource.RLIM_INFINITY:  # then no two wardens use the same ones, should they see each other
            self._mark = (1 << 60) + (int.from_bytes(os.urandom(5)) << 19)

    def reap(self) -> None:
        with suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                code = os.waitstatus_to_exitcode(found[1])
                if child := self._children.pop(found[0], None):
                    child.ended.set_result(code if code >= 0 else 128 - code)

    def spawn(self, argv: list[str], env: Mapping[str, str], folder: int, *, split: bool) -> ChildProcess:
        """Start `argv` in `folder`, with stdout and stderr `split` or as one. Raises OSError and ValueError."""
        self._mark -= 1
        pipes = [os.pipe() for _ in range(3 if split else 2)]
        ours, theirs = [pipes[0][1], *(pipe[0] for pipe in pipes[1:])], [pipes[0][0], *(pipe[1] for pipe in pipes[1:])]
        try:
            resource.setrlimit(resource.RLIMIT_RTTIME, (self._mark, self._most))
            pid = _start(argv, {**self._env, **env}, folder, [*theirs, theirs[-1]][:3])
        except BaseException:
            _close(ours)
            raise
        finally:
            resource.setrlimit(resource.RLIMIT_RTTIME, (self._most, self._most))
            _close(theirs)
        for fd in ours:
            os.set_blocking(fd, False)
        child = self._children[pid] = ChildProcess(pid, self._mark, ours)
        return child


def _start(argv: list[str], env: Mapping[str, str], folder: int, standard: Sequence[int]) -> int:
    os.fchdir(folder)  # posix_spawn knows no folder, and nothing else here depends on ours
    return os.posix_spawn(
        _find(argv[0], env),
        argv,
        env,
        file_actions=[(os.POSIX_SPAWN_DUP2, fd, index) for index, fd in enumerate(standard)],
        setsid=True,
        setsigmask=(),
        setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),  # Python ignores them; no program expects to inherit that
    )


def _find(name: str, env: Mapping[str, str]) -> str:
    """As a shell finds it in the PATH of `env`; relative folders start at the current one."""
    if "/" in name:
        return name
    for folder in os.get_exec_path(env):
        path = f"{folder or '.'}/{name}"
        if os.access(path, os.X_OK) and not os.path.isdir(path):  # noqa: PTH112 - pathlib is not loaded here
            return path
    raise FileNotFoundError(errno.ENOENT, "no such program", name)


async def sweep(leader: int, mark: int | None) -> None:
    """SIGKILL the relatives of a process until none is left."""
    for _ in range(SWEEPS):
        family = _relatives(leader, mark)
        for pid in family:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not family:
            return
        await asyncio.sleep(SWEEP_SECONDS)


def _relatives(leader: int, mark: int | None) -> set[int]:
    """The living processes of a session, those that carry its mark, and the descendants of all; never the caller."""
    parents: dict[int, int] = {}
    family = {leader}
    for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))):  # noqa: PTH208 - as above
        state, parent, _, session = (_read(f"/proc/{pid}/stat").rpartition(b")")[2].split() or [b"X", b"", b"", b""])[
            :4
        ]
        if state not in {b"Z", b"X"}:
            parents[pid] = int(parent)
            if int(session) == leader or mark == _mark(pid):
                family.add(pid)
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return (family & parents.keys()) - {os.getpid()}


def _mark(pid: int) -> int:
    try:
        return resource.prlimit(pid, resource.RLIMIT_RTTIME)[0]
    except OSError:
        return resource.RLIM_INFINITY


def _read(path: str) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - as above
            return file.read()
    except OSError:
        return b""


def _close(fds: Iterable[int]) -> None:
    for fd in fds:
        if fd >= 0:
            os.close(fd)


async def usable(fd: int, other: "asyncio.Future[int]", *, write: bool = False) -> None:
    """Wait until `fd` can be read (or written), or the other is done."""
    loop = asyncio.get_running_loop()
    woken = loop.create_future()

    def wake(_: object = None) -> None:
        if not woken.done():
            woken.set_result(None)

    add, remove = (loop.add_writer, loop.remove_writer) if write else (loop.add_reader, loop.remove_reader)
    add(fd, wake)
    other.add_done_callback(wake)
    try:
        await woken
    finally:
        remove(fd)
        other.remove_done_callback(wake)
