"""Runtime without isolation, for tests and development: runs the real warden as a plain child process.

Programs in its containers run as the user of the server, see this machine's files, and have their folders and files at
their paths on this machine. A container has its own loopback if the kernel allows it; otherwise all share the host's,
and there is no egress by name. No setting selects this runtime.
"""

import asyncio
import fcntl
import json
import os
import signal
import socket
import sys
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from roost import warden
from roost.core import clock, ids
from roost.core.machine import unix_socket
from roost.core.machine.memory import read_resident_bytes
from roost.core.machine.unix_socket import Stream, StreamHandler
from roost.core.problem import Problem
from roost.drivers.runtime import loopback_namespace
from roost.drivers.runtime.bwrap.agent_paths import remove_tree, validate_name
from roost.drivers.runtime.bwrap.disk_meter import HostDiskMeter
from roost.drivers.runtime.bwrap.record import (
    ContainerRecord,
    HostProcess,
    boot_id,
    find_tree,
    list_pids,
    load_record,
    read_stat,
)
from roost.drivers.runtime.contract import (
    Capabilities,
    Container,
    ContainerSpec,
    Enforcement,
    RelayListener,
    Runtime,
    RuntimeFailed,
)
from roost.warden_client.client import WardenClient
from roost.warden_client.errors import ContainerNotRunning

_LISTEN_FD, _RELAYS_FD, _FREE_FD = 3, 4, 10
_START_SECONDS, _CONNECT_SECONDS, _KILL_SECONDS, _POLL_SECONDS = 10.0, 5.0, 5.0, 0.01
_PATH = "/usr/local/bin:/usr/bin:/bin"
_PYTHON = [sys.executable, "-S", "-E", "-I"]
_WARDEN = str(Path(warden.__file__).with_name("warden.py"))
_NOT_ENFORCED = ("separate user", "files", "network", "memory", "cpu", "pids", "system calls")


class FakeRuntime(Runtime):
    """Fake runtime with `agents/<id>/{workspace,home}` and `run/<id>/{w.sock,container.json,out/}` in its folder."""

    name: ClassVar[str] = "fake"

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()
        self.disk = HostDiskMeter(self._folder)
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self.slots = 16
        self.preferred: list[str] = []

    def take_priority(self) -> None:
        pass

    def prefer(self, agent_id: str) -> None:
        self.preferred.append(agent_id)

    def start_slots(self) -> int:
        return self.slots

    async def probe(self) -> Capabilities:
        agent_id = f"probe-{ids.new_host_label()}"
        try:
            async with asyncio.timeout(_START_SECONDS):
                await self.start(ContainerSpec(agent_id))
                await self.delete(agent_id)
        except (Problem, OSError) as problem:
            return Capabilities(usable=False, error=str(problem))
        return Capabilities(
            usable=True, enforcement=[Enforcement(name, False, "fake runtime") for name in _NOT_ENFORCED]
        )

    async def start(self, spec: ContainerSpec) -> Container:
        async with self._locks[spec.agent_id]:
            if container := self._load_container(spec.agent_id):
                if container.delete_only == spec.delete_only:
                    return container
                await self._stop(spec.agent_id, _KILL_SECONDS)
            try:
                return await self._start(spec)
            except (Problem, OSError) as problem:
                raise RuntimeFailed(f"The container did not start: {problem}") from problem

    async def stop(self, agent_id: str, grace: float = 5.0) -> None:
        async with self._locks[agent_id]:
            await self._stop(agent_id, grace)

    async def delete(self, agent_id: str) -> None:
        await self.stop(agent_id, grace=0)
        for folder in (self._run(agent_id), self._agent_folder(agent_id)):
            await asyncio.to_thread(remove_tree, folder)

    async def list(self) -> Sequence[Container]:
        known = [path.parent.name for path in self._folder.glob("run/*/container.json")]
        containers = [container for agent_id in known if (container := self._load_container(agent_id))]
        recorded = {container.pid for container in containers}
        found = [pid for pid, agent_id in self._find_wardens() if not self._locks[agent_id].locked()]
        # A child of a warden has its command line until it executes another program.
        for pid in [pid for pid in found if recorded.isdisjoint({pid, _parent(pid)})]:
            await _end(pid, 0)
        return containers

    async def read_memory(self, agent_ids: Collection[str]) -> Mapping[str, int]:
        running = {agent: found.pid for agent in agent_ids if (found := self._load_container(agent)) and found.pid}
        return {agent: sum(map(_resident_bytes, {pid, *_descendants(pid)})) for agent, pid in running.items()}

    async def list_stored(self) -> Collection[str]:
        return {path.name for path in self._folder.glob("agents/*")}

    async def connect(self, agent_id: str) -> Stream:
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                return await unix_socket.connect_unix(self._run(agent_id) / "w.sock")
        except OSError:
            raise ContainerNotRunning from None

    async def listen(self, agent_id: str, relay: str, handler: StreamHandler) -> RelayListener:
        try:
            listener = unix_socket.listen_unix(_make_folder(self._run(agent_id) / "out") / validate_name(relay))
            return await unix_socket.serve_unix(listener, handler)
        except OSError as error:
            raise RuntimeFailed(f"The agent's relay {relay} cannot be opened: {error}") from error

    async def _stop(self, agent_id: str, grace: float) -> None:
        if (container := self._load_container(agent_id)) and container.pid:
            await _end(container.pid, grace)
        (self._run(agent_id) / "container.json").unlink(missing_ok=True)

    async def _start(self, spec: ContainerSpec) -> Container:
        pid = self._spawn(spec)
        try:
            async with asyncio.timeout(_START_SECONDS):
                await WardenClient(partial(self.connect, spec.agent_id)).ping()
            return self._save_record(spec, pid)
        except BaseException:
            await _end(pid, 0)
            raise

    def _agent_folder(self, agent_id: str) -> Path:
        return self._folder / "agents" / validate_name(agent_id)

    def _run(self, agent_id: str) -> Path:
        return self._folder / "run" / validate_name(agent_id)

    def _spawn(self, spec: ContainerSpec) -> int:
        out = _make_folder(self._run(spec.agent_id) / "out")
        config = self._config(spec)
        arguments = [json.dumps([*_PYTHON, _WARDEN]), json.dumps(config), json.dumps({**config, "egress": None})]
        log = str(self._run(spec.agent_id) / "warden.log")
        with unix_socket.listen_unix(self._run(spec.agent_id) / "w.sock") as listener:
            return _spawn([*_PYTHON, loopback_namespace.__file__, *arguments], log, listener, out)

    def _config(self, spec: ContainerSpec) -> Mapping[str, Any]:
        folder = self._agent_folder(spec.agent_id)
        relays = f"/proc/self/fd/{_RELAYS_FD}"  # shorter than the limit of socket paths
        files = self._write_files(spec)
        env = {name: files.get(value, value) for name, value in spec.env.items()}
        return {
            "agent": spec.agent_id,
            "listen_fd": _LISTEN_FD,
            "workspace": str(_make_folder(folder / "workspace")),
            "home": str(_make_folder(folder / "home")),
            "relays": {str(port): f"{relays}/{name}" for port, name in spec.relays.items()},
            "egress": f"{relays}/{spec.egress}" if spec.egress else None,
            "env": {"PATH": _PATH, "HOME": str(folder / "home"), **env},
            "delete_only": spec.delete_only,
        }

    def _write_files(self, spec: ContainerSpec) -> Mapping[str, str]:
        """Write the spec's files; return their paths on this machine by those in the container."""
        paths = {path: self._run(spec.agent_id) / "files" / path.lstrip("/") for path in spec.files}
        for path, content in spec.files.items():
            _make_folder(paths[path].parent)
            paths[path].write_bytes(content)
        return {path: str(written) for path, written in paths.items()}

    def _save_record(self, spec: ContainerSpec, pid: int) -> Container:
        process = HostProcess(pid, _start_ticks(pid) or 0)
        record = ContainerRecord(
            spec.agent_id, boot_id(), process, process, clock.utc_now(), delete_only=spec.delete_only
        )
        record.save(self._run(spec.agent_id) / "container.json")
        return record.to_container()

    def _load_container(self, agent_id: str) -> Container | None:
        """Return the running container, None without a complete record."""
        record = load_record(self._run(agent_id) / "container.json")
        return record.to_container() if record and _start_ticks(record.warden.pid) == record.warden.born else None

    def _find_wardens(self) -> Iterator[tuple[int, str]]:
        """Yield pid and agent id of every warden of this folder, with or without a record."""
        for pid in list_pids():
            with suppress(OSError, ValueError, LookupError, TypeError):
                config = json.loads(Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[-2])
                if config["workspace"] == str(self._agent_folder(config["agent"]) / "workspace"):
                    yield pid, config["agent"]


def _spawn(argv: list[str], log: str, listener: socket.socket, relays: Path) -> int:
    """Spawn a process that outlives us; no subprocess object, because nothing waits for it."""
    folder = os.open(relays, os.O_PATH | os.O_CLOEXEC)
    # Numbers above those that the child gets, so that no action overwrites a source.
    fds = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _FREE_FD) for fd in (listener.fileno(), folder)]
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
    """Stop a warden and its descendants; it adopts every orphan, so its tree is complete while it lives."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    if not await _wait_until_gone(pid, grace):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)  # so that it starts nothing while its tree is killed
        while tree := _descendants(pid):
            _kill(tree)
            await asyncio.sleep(_POLL_SECONDS)
        _kill({pid})
        if not await _wait_until_gone(pid, _KILL_SECONDS):
            raise RuntimeFailed(f"Process {pid} does not end")


async def _wait_until_gone(pid: int, seconds: float) -> bool:
    last = clock.monotonic_seconds() + seconds
    while _start_ticks(pid) is not None:
        if clock.monotonic_seconds() >= last:
            return False
        await asyncio.sleep(_POLL_SECONDS)
    return True


def _kill(pids: set[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _descendants(pid: int) -> set[int]:
    return find_tree(pid, {child: _parent(child) for child in list_pids()}) - {pid}


def _resident_bytes(pid: int) -> int:
    try:
        return read_resident_bytes(pid)
    except OSError:  # it has ended meanwhile
        return 0


def _parent(pid: int) -> int | None:
    """Return the parent of a running process, None for a zombie."""
    fields = read_stat(pid)
    return None if fields[0] in {b"Z", b"X"} else int(fields[1])


def _start_ticks(pid: int) -> int | None:
    """Return when a running process started, in ticks since the boot; reap it if it is a child that ended."""
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    process = HostProcess.find(pid)
    return process.born if process else None


def _make_folder(folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder
