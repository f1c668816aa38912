"""Processes of a container: each has its own session, is reaped, and is killed with all its descendants.

Descendants are found by session and by a mark that they inherit: the soft limit of real-time CPU, which has no effect
on ordinary processes. So those that call setsid, lose their parent or empty their environment are found too. All are
started by a thread with a filter that denies changes of the mark, which children inherit.
"""

from __future__ import annotations

import errno
import resource

from .event_loop import READ, Future
from .light_imports import call_prctl, format_address, os, signal, stat, struct, suppress
from .waiting import WorkerThreads, sleep_seconds, wait_until_ready

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence

    FileAction = tuple[int, int, int] | tuple[int, int, str, int, int]  # of posix_spawn

READ_BYTES = 256 * 1024
KILL_ATTEMPTS, KILL_PAUSE_SECONDS = 200, 0.01
DEFAULT_PATH = "/bin:/usr/bin"
NICE_LEVELS = 9  # of programs below the warden, which requests wait for

# seccomp(2)
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, DENY = 0x7FFF0000, 0x00050001  # EPERM
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
RLIMIT_RTTIME = 15
FIRST_USER_NAMESPACE = 0xEFFFFFFD  # PROC_USER_INIT_INO in the kernel's proc_ns.h
CALLS = {"x86_64": (0xC000003E, 160, 302), "aarch64": (0xC00000B7, 164, 261)}  # audit number, setrlimit, prlimit64


class ChildProcess:
    """Process that leads a session; all its descendants have its `mark`.

    On a terminal it has no outputs: `stdin` is our side, for both directions.
    """

    def __init__(self, pid: int, mark: int, fds: Sequence[int]) -> None:
        self.pid, self.mark = pid, mark
        self.stdin, *self.outputs = fds  # our ends, non-blocking; stdout, and stderr if it is split
        self.ended = Future[int]()  # its exit code

    def signal(self, number: int) -> None:
        """Send a signal to the process group."""
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
        """Kill the process and its descendants, also in other sessions; return when they are gone."""
        await kill_tree(self.pid, self.mark)
        await self.ended

    async def output(self, fd: int) -> AsyncGenerator[bytes]:
        """Yield output until the process ends, even if a background process keeps the pipe open."""
        left = 4 * READ_BYTES  # a pipe holds less, so this includes all output from before the end
        while left > 0:
            has_ended = self.ended.done()  # checked before the read, so that no output is missed
            try:
                data = os.read(fd, READ_BYTES)
            except BlockingIOError:
                if has_ended:
                    return
                await wait_until_ready(fd, READ, self.ended)
                continue
            except OSError:  # nothing has the other side of the terminal open
                return
            if not data:
                return
            left -= len(data) if has_ended else 0
            yield data


class ProcessSpawner:
    """Starts processes, and reaps them and the orphans of the container; `reap` handles SIGCHLD."""

    def __init__(self, env: Mapping[str, str], *, lowers_sessions: bool = False) -> None:
        self._env = dict(env)
        self._lowers_sessions = lowers_sessions
        self._children: dict[int, ChildProcess] = {}
        self._thread = WorkerThreads(1)
        self._is_guarded = False
        self._hard_limit = resource.getrlimit(resource.RLIMIT_RTTIME)[1]
        self._mark = self._hard_limit
        if self._hard_limit == resource.RLIM_INFINITY:  # a random range, as wardens of the fake runtime see each other
            self._mark = (1 << 60) + (int.from_bytes(os.urandom(5)) << 19)

    def reap(self) -> None:
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                code = os.waitstatus_to_exitcode(ended[1])
                if child := self._children.pop(ended[0], None):
                    child.ended.set_result(code if code >= 0 else 128 - code)

    def spawn(self, argv: list[str], env: Mapping[str, str], folder: int, *, split: bool) -> ChildProcess:
        """Start `argv` in `folder`, with stdout and stderr `split` or merged. Raises OSError and ValueError."""
        pipes = [os.pipe() for _ in range(3 if split else 2)]
        ours, theirs = [pipes[0][1], *(pipe[0] for pipe in pipes[1:])], [pipes[0][0], *(pipe[1] for pipe in pipes[1:])]
        actions = [(os.POSIX_SPAWN_DUP2, fd, index) for index, fd in enumerate([*theirs, theirs[-1]][:3])]
        try:
            return self._start(argv, env, folder, actions, ours)
        except BaseException:
            _close(ours)
            raise
        finally:
            _close(theirs)

    def spawn_on_terminal(
        self, argv: list[str], env: Mapping[str, str], folder: int, pair: tuple[int, int]
    ) -> ChildProcess:
        """Start `argv` with a terminal as its controlling one. Raises OSError and ValueError."""
        ours, theirs = pair
        opening = (os.POSIX_SPAWN_OPEN, 0, os.ttyname(theirs), os.O_RDWR, 0)  # the leader of a session acquires it
        return self._start(argv, env, folder, [opening, *((os.POSIX_SPAWN_DUP2, 0, fd) for fd in (1, 2))], [ours])

    def _start(
        self, argv: list[str], env: Mapping[str, str], folder: int, actions: Sequence[FileAction], ours: list[int]
    ) -> ChildProcess:
        if not self._is_guarded:
            self._thread.call(_prepare_thread)
            self._is_guarded = True
        self._mark -= 1
        try:
            resource.setrlimit(resource.RLIMIT_RTTIME, (self._mark, self._hard_limit))
            pid = self._thread.call(_spawn_process, argv, {**self._env, **env}, folder, actions)
        finally:
            resource.setrlimit(resource.RLIMIT_RTTIME, (self._hard_limit, self._hard_limit))
        if self._lowers_sessions:
            _lower_session(pid)
        for fd in ours:
            os.set_blocking(fd, False)
        child = self._children[pid] = ChildProcess(pid, self._mark, ours)
        return child


def _prepare_thread() -> None:
    """Prepare the thread that starts programs: they inherit its filter and its nice value, which is its own."""
    deny_mark_changes()
    os.nice(NICE_LEVELS)


def _lower_session(pid: int) -> None:
    """Lower the session of a process among all sessions of the machine (sched(7), autogroup).

    The kernel allows ten changes a second to all users together; a session that misses its turn keeps its place.
    """
    with suppress(OSError), open(f"/proc/{pid}/autogroup", "wb", buffering=0) as file:  # noqa: PTH123 - as above
        file.write(b"19")


def _spawn_process(argv: list[str], env: Mapping[str, str], folder: int, actions: Sequence[FileAction]) -> int:
    os.fchdir(folder)  # posix_spawn has no working directory, and nothing here depends on ours
    return os.posix_spawn(
        _find_program(argv[0], env),
        argv,
        env,
        file_actions=actions,
        setsid=True,
        setsigmask=(),
        setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),  # Python ignores them, which programs must not inherit
    )


def _find_program(name: str, env: Mapping[str, str]) -> str:
    """Find a program in the PATH of `env` as a shell does; relative folders start at the current one."""
    if "/" in name:
        return name
    for folder in env.get("PATH", DEFAULT_PATH).split(":"):
        path = f"{folder or '.'}/{name}"
        if os.access(path, os.X_OK) and not stat.S_ISDIR(os.stat(path).st_mode):
            return path
    raise FileNotFoundError(errno.ENOENT, "no such program", name)


def set_limits(limits: Mapping[str, int]) -> None:
    """Set limits for all processes of the container, of which we are the first; no limit is raised."""
    for name, wanted in limits.items():
        kind = getattr(resource, f"RLIMIT_{name.upper()}")
        _, hard = resource.getrlimit(kind)
        value = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        # Without a user namespace, which old clusters do not make, the processes of all containers would count.
        if name != "nproc" or os.stat("/proc/self/ns/user").st_ino != FIRST_USER_NAMESPACE:
            resource.setrlimit(kind, (value, value))


async def kill_tree(leader: int, mark: int | None) -> None:
    """Send SIGKILL to the session, marked processes and descendants of `leader` until none is left."""
    for _ in range(KILL_ATTEMPTS):
        pids = _list_tree(leader, mark)
        for pid in pids:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not pids:
            return
        await sleep_seconds(KILL_PAUSE_SECONDS)


def _list_tree(leader: int, mark: int | None) -> set[int]:
    """Return the running processes of a session or with its mark, and their descendants, without the caller."""
    parents: dict[int, int] = {}
    tree = {leader}
    for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))):
        fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split() or [b"X", b"", b"", b""]
        state, parent, _, session = fields[:4]
        if state not in {b"Z", b"X"}:
            parents[pid] = int(parent)
            if int(session) == leader or mark == _read_mark(pid):
                tree.add(pid)
    while children := {pid for pid, parent in parents.items() if parent in tree} - tree:
        tree |= children
    return (tree & parents.keys()) - {os.getpid()}


def _read_mark(pid: int) -> int:
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


def deny_mark_changes() -> None:
    """Install a filter for the calling thread and its children; on other architectures there is none. Raises OSError.

    Without it a process could raise its soft limit, and with a session of its own survive the timeout of its command.
    The filter is on top of the container's, which denies the second ABI of x86-64.
    """
    if (machine := os.uname().machine) in CALLS:
        code = _compile_filter(*CALLS[machine])
        program = struct.pack("H0P", len(code) // 8) + format_address(code)
        call_prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)  # without it, the next call fails
        if call_prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0):
            raise OSError(errno.EPERM, "the filter of limits cannot be installed")


def _compile_filter(audit: int, setrlimit: int, prlimit: int) -> bytes:
    """Return the filter; it allows `prlimit` without a new limit, which `getrlimit` uses."""
    allow, deny = (RETURN, 0, 0, ALLOW), (RETURN, 0, 0, DENY)
    code = [
        (LOAD, 0, 0, ARCHITECTURE),
        (EQUAL, 1, 0, audit),
        allow,
        (LOAD, 0, 0, NUMBER),
        (EQUAL, 0, 4, setrlimit),
        (LOAD, 0, 0, ARGUMENTS),
        (EQUAL, 0, 1, RLIMIT_RTTIME),
        deny,
        allow,
        (EQUAL, 1, 0, prlimit),
        allow,
        (LOAD, 0, 0, ARGUMENTS + 8),
        (EQUAL, 1, 0, RLIMIT_RTTIME),
        allow,
        (LOAD, 0, 0, ARGUMENTS + 16),
        (EQUAL, 0, 2, 0),
        (LOAD, 0, 0, ARGUMENTS + 20),
        (EQUAL, 1, 0, 0),
        deny,
        allow,
    ]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)
