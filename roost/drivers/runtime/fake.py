"""A runtime without isolation, for tests and development: the real warden as a plain child process.

Programs in its containers run as the user of the server, see this machine's files, and find their folders and files
at their paths on this machine. Where the kernel allows it a container has its own loopback; elsewhere all share the
host's, and there is no egress by name. No setting selects it.
"""

import asyncio
import fcntl
import json
import os
import re
import signal
import socket
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from roost import warden
from roost.core import clock, ids, unix_socket
from roost.core.problem import Problem
from roost.core.unix_socket import Stream, StreamHandler
from roost.drivers.runtime import loopback_namespace
from roost.drivers.runtime.bwrap.remove import remove_tree
from roost.drivers.runtime.contract import (
    Capabilities,
    Container,
    ContainerNotRunning,
    ContainerSpec,
    Enforcement,
    RelayListener,
    Runtime,
    RuntimeFailed,
)
from roost.drivers.runtime.warden_client import WardenClient

_LISTEN_FD, _RELAYS_FD, _FREE_FD = 3, 4, 10
_START_SECONDS, _CONNECT_SECONDS, _KILL_SECONDS, _POLL_SECONDS = 10.0, 5.0, 5.0, 0.01
_PATH = "/usr/local/bin:/usr/bin:/bin"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_PYTHON = [sys.executable, "-S", "-E", "-I"]
_WARDEN = str(Path(warden.__file__).with_name("warden.py"))
_NOTHING = ("separate user", "files", "network", "memory", "cpu", "pids", "system calls")


class FakeRuntime(Runtime):
    """Keeps `agents/<id>/{workspace,home}` and `run/<id>/{w.sock,container.json,out/}` in its folder."""

    name: ClassVar[str] = "fake"

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def probe(self) -> Capabilities:
        agent_id = f"probe-{ids.new_host_label()}"
        try:
            async with asyncio.timeout(_START_SECONDS):
                await self.start(ContainerSpec(agent_id))
                await self.delete(agent_id)
        except (Problem, OSError) as problem:
            return Capabilities(usable=False, error=str(problem))
        return Capabilities(usable=True, enforcement=[Enforcement(name, False, "a fake") for name in _NOTHING])

    async def start(self, spec: ContainerSpec) -> Container:
        async with self._locks[spec.agent_id]:
            if container := self._recorded(spec.agent_id):
                return container
            try:
                return await self._start(spec)
            except (Problem, OSError) as problem:
                raise RuntimeFailed(f"The container did not start: {problem}") from problem

    async def stop(self, agent_id: str, grace: float = 5.0) -> None:
        async with self._locks[agent_id]:
            if (container := self._recorded(agent_id)) and container.pid:
                await _end(container.pid, grace)
            (self._run(agent_id) / "container.json").unlink(missing_ok=True)

    async def delete(self, agent_id: str) -> None:
        await self.stop(agent_id, grace=0)
        for folder in (self._run(agent_id), self._agent_folder(agent_id)):
            await asyncio.to_thread(remove_tree, folder)

    async def list(self) -> Sequence[Container]:
        known = [path.parent.name for path in self._folder.glob("run/*/container.json")]
        containers = [container for agent_id in known if (container := self._recorded(agent_id))]
        recorded = {container.pid for container in containers}
        found = [pid for pid, agent_id in self._wardens() if not self._locks[agent_id].locked()]
        # A child of a warden has its command line until it is another program.
        for pid in [pid for pid in found if recorded.isdisjoint({pid, _parent(pid)})]:
            await _end(pid, 0)
        return containers

    async def connect(self, agent_id: str) -> Stream:
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                return await unix_socket.connect_unix(self._run(agent_id) / "w.sock")
        except OSError:
            raise ContainerNotRunning from None

    async def listen(self, agent_id: str, relay: str, handler: StreamHandler) -> RelayListener:
        try:
            listener = unix_socket.listen_unix(_made(self._run(agent_id) / "out") / _checked(relay))
            return await unix_socket.serve_unix(listener, handler)
        except OSError as error:
            raise RuntimeFailed(f"The agent's relay {relay} cannot be opened: {error}") from error

    async def _start(self, spec: ContainerSpec) -> Container:
        pid = self._spawn(spec)
        try:
            async with asyncio.timeout(_START_SECONDS):
                await WardenClient(partial(self.connect, spec.agent_id)).ping()
            return self._record(spec.agent_id, pid)
        except BaseException:
            await _end(pid, 0)
            raise

    def _agent_folder(self, agent_id: str) -> Path:
        return self._folder / "agents" / _checked(agent_id)

    def _run(self, agent_id: str) -> Path:
        return self._folder / "run" / _checked(agent_id)

    def _spawn(self, spec: ContainerSpec) -> int:
        out = _made(self._run(spec.agent_id) / "out")
        config = self._config(spec)
        arguments = [json.dumps([*_PYTHON, _WARDEN]), json.dumps(config), json.dumps({**config, "egress": None})]
        log = str(self._run(spec.agent_id) / "warden.log")
        with unix_socket.listen_unix(self._run(spec.agent_id) / "w.sock") as listener:
            return _spawn([*_PYTHON, loopback_namespace.__file__, *arguments], log, listener, out)

    def _config(self, spec: ContainerSpec) -> Mapping[str, Any]:
        place, relays = (
            self._agent_folder(spec.agent_id),
            f"/proc/self/fd/{_RELAYS_FD}",
        )  # a path there is always short enough
        files = self._write_files(spec)
        env = {name: files.get(value, value) for name, value in spec.env.items()}
        return {
            "agent": spec.agent_id,
            "listen_fd": _LISTEN_FD,
            "workspace": str(_made(place / "workspace")),
            "home": str(_made(place / "home")),
            "relays": {str(port): f"{relays}/{name}" for port, name in spec.relays.items()},
            "egress": f"{relays}/{spec.egress}" if spec.egress else None,
            "env": {"PATH": _PATH, "HOME": str(place / "home"), **env},
        }

    def _write_files(self, spec: ContainerSpec) -> Mapping[str, str]:
        """Write the spec's files; return their paths on this machine by those in the container."""
        paths = {path: self._run(spec.agent_id) / "files" / path.lstrip("/") for path in spec.files}
        for path, content in spec.files.items():
            _made(paths[path].parent)
            paths[path].write_bytes(content)
        return {path: str(written) for path, written in paths.items()}

    def _record(self, agent_id: str, pid: int) -> Container:
        container = Container(agent_id, pid, clock.utc_now())
        record = {"pid": pid, "started": _started(pid), "at": container.started_at.isoformat()}
        fresh = self._run(agent_id) / "container.new"
        fresh.write_text(json.dumps(record))
        fresh.rename(self._run(agent_id) / "container.json")
        return container

    def _recorded(self, agent_id: str) -> Container | None:
        """The running container, if its record is complete."""
        try:
            record = json.loads((self._run(agent_id) / "container.json").read_text())
        except (FileNotFoundError, ValueError):
            return None
        if _started(record["pid"]) != record["started"]:
            return None
        return Container(agent_id, record["pid"], datetime.fromisoformat(record["at"]))

    def _wardens(self) -> Iterator[tuple[int, str]]:
        """Pid and agent of every warden of this folder, recorded or not."""
        for pid in _pids():
            with suppress(OSError, ValueError, LookupError, TypeError):
                config = json.loads(Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[-2])
                if config["workspace"] == str(self._agent_folder(config["agent"]) / "workspace"):
                    yield pid, config["agent"]


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise RuntimeFailed(f"Not a name: {name!a}")
    return name


def _spawn(argv: list[str], log: str, listener: socket.socket, relays: Path) -> int:
    """A process that outlives us. Not a subprocess object: nobody waits for it in the usual way."""
    folder = os.open(relays, os.O_PATH | os.O_CLOEXEC)
    fds = [
        fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _FREE_FD) for fd in (listener.fileno(), folder)
    ]  # clear of the targets
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
        (os.POSIX_SPAWN_DUP2, fds[0], _LISTEN_FD),
        (os.POSIX_SPAWN_DUP2, fds[1], _RELAYS_FD),
    ]
    try:
        return os.posix_spawn(argv[0], argv, {}, file_actions=actions, setsid=True)
    finally:
        for fd in (folder, *fds):
            os.close(fd)


async def _end(pid: int, grace: float) -> None:
    """End a warden and its descendants; it adopts every orphan, so the tree is complete while it lives."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    if not await _gone({pid}, grace):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)  # so that it starts nothing while its tree is cut down
        while tree := _descendants(pid):
            _kill(tree)
            await asyncio.sleep(_POLL_SECONDS)
        _kill({pid})
        if not await _gone({pid}, _KILL_SECONDS):
            raise RuntimeFailed(f"Process {pid} does not end")


async def _gone(pids: set[int], seconds: float) -> bool:
    last = clock.monotonic_seconds() + seconds
    while any(_started(pid) is not None for pid in pids):
        if clock.monotonic_seconds() >= last:
            return False
        await asyncio.sleep(_POLL_SECONDS)
    return True


def _kill(pids: set[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _descendants(pid: int) -> set[int]:
    parents = {child: _parent(child) for child in _pids()}
    family = {pid}
    while more := {child for child, parent in parents.items() if parent in family} - family:
        family |= more
    return family - {pid}


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]  # noqa: PTH208 - only the names


def _parent(pid: int) -> int | None:
    fields = _stat(pid)
    return int(fields[1]) if fields else None


def _started(pid: int) -> int | None:
    """When a living process started, in clock ticks since boot; together with the pid it is unique."""
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)  # ours are reaped here
    fields = _stat(pid)
    return int(fields[19]) if fields else None


def _stat(pid: int) -> Sequence[str]:
    """The fields of /proc/<pid>/stat from the state on; none of a process that is gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [] if fields[0] in "ZX" else fields


def _made(folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder
