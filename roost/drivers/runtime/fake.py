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
from collections.abc import Collection, Mapping, Sequence
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
from roost.drivers.runtime.bwrap.agent_paths import AgentPaths
from roost.drivers.runtime.bwrap.disk_meter import HostDiskMeter
from roost.drivers.runtime.bwrap.record import (
    ContainerRecord,
    HostProcess,
    boot_id,
    find_marked,
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
        self._paths = AgentPaths(folder)
        self.disk = HostDiskMeter(self._paths.folder)
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
            if present := self._load_record(spec.agent_id):
                if present.delete_only == spec.delete_only:
                    return present.to_container()
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
        await asyncio.to_thread(self._paths.remove, agent_id)

    async def list(self) -> Sequence[Container]:
        records = [found for agent_id in self._paths.list_agents() if (found := self._load_record(agent_id))]
        recorded = {found.warden.pid for found in records}
        marked = [process for agent, process in find_marked(self._paths.mark) if not self._locks[agent].locked()]
        # A child of a warden has its command line until it executes another program.
        for process in [one for one in marked if recorded.isdisjoint({one.pid, _parent(one.pid)})]:
            await _end(process, 0)
        return [found.to_container() for found in records]

    async def read_memory(self, agent_ids: Collection[str]) -> Mapping[str, int]:
        running = {agent: found.warden.pid for agent in agent_ids if (found := self._load_record(agent))}
        return {agent: sum(map(_resident_bytes, _tree(pid))) for agent, pid in running.items()}

    async def list_stored(self) -> Collection[str]:
        return self._paths.list_stored()

    async def connect(self, agent_id: str) -> Stream:
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                return await unix_socket.connect_unix(self._paths.socket(agent_id))
        except OSError:
            raise ContainerNotRunning from None

    async def listen(self, agent_id: str, relay: str, handler: StreamHandler) -> RelayListener:
        try:
            _make_folder(self._paths.relays(agent_id))
            return await unix_socket.serve_unix(unix_socket.listen_unix(self._paths.relay(agent_id, relay)), handler)
        except OSError as error:
            raise RuntimeFailed(f"The agent's relay {relay} cannot be opened: {error}") from error

    async def _stop(self, agent_id: str, grace: float) -> None:
        if present := self._load_record(agent_id):
            await _end(present.warden, grace)
        self._paths.record(agent_id).unlink(missing_ok=True)

    async def _start(self, spec: ContainerSpec) -> Container:
        process = self._spawn(spec)
        try:
            async with asyncio.timeout(_START_SECONDS):
                await WardenClient(partial(self.connect, spec.agent_id)).ping()
            record = ContainerRecord(
                spec.agent_id, boot_id(), process, process, clock.utc_now(), delete_only=spec.delete_only
            )
            record.save(self._paths.record(spec.agent_id))
            return record.to_container()
        except BaseException:
            await _end(process, 0)
            raise

    def _spawn(self, spec: ContainerSpec) -> HostProcess:
        out = _make_folder(self._paths.relays(spec.agent_id))
        config = self._config(spec)
        arguments = [json.dumps([*_PYTHON, _WARDEN]), json.dumps(config), json.dumps({**config, "egress": None})]
        log = str(self._paths.run(spec.agent_id) / "warden.log")
        with self._listen(spec.agent_id) as listener:
            pid = _spawn([*_PYTHON, loopback_namespace.__file__, *arguments], log, listener, out)
        if process := HostProcess.find(pid):
            return process
        raise RuntimeFailed("The warden ended at once")

    def _listen(self, agent_id: str) -> socket.socket:
        return unix_socket.listen_unix(self._paths.socket(agent_id))

    def _config(self, spec: ContainerSpec) -> Mapping[str, Any]:
        workspace = _make_folder(self._paths.workspace(spec.agent_id))
        home = _make_folder(self._paths.home(spec.agent_id))
        relays = f"/proc/self/fd/{_RELAYS_FD}"  # shorter than the limit of socket paths
        files = self._write_files(spec)
        env = {name: files.get(value, value) for name, value in spec.env.items()}
        return {
            "agent": spec.agent_id,
            "mark": self._paths.mark,
            "listen_fd": _LISTEN_FD,
            "workspace": str(workspace),
            "home": str(home),
            "relays": {str(port): f"{relays}/{name}" for port, name in spec.relays.items()},
            "egress": f"{relays}/{spec.egress}" if spec.egress else None,
            "env": {"PATH": _PATH, "HOME": str(home), **env},
            "delete_only": spec.delete_only,
        }

    def _write_files(self, spec: ContainerSpec) -> Mapping[str, str]:
        """Write the spec's files; return their paths on this machine by those in the container."""
        paths = {path: self._paths.run(spec.agent_id) / "files" / path.lstrip("/") for path in spec.files}
        for path, content in spec.files.items():
            _make_folder(paths[path].parent)
            paths[path].write_bytes(content)
        return {path: str(written) for path, written in paths.items()}

    def _load_record(self, agent_id: str) -> ContainerRecord | None:
        found = load_record(self._paths.record(agent_id))
        if found is None:
            return None
        _reap(found.warden.pid)
        return found if HostProcess.find(found.warden.pid) == found.warden else None


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


async def _end(process: HostProcess, grace: float) -> None:
    """Stop a warden and its descendants; it adopts every orphan, so its tree is complete while it lives."""
    if grace > 0:
        process.kill(signal.SIGTERM)
    if grace <= 0 or not await process.wait_until_gone(grace):
        process.kill(signal.SIGSTOP)  # so that it starts nothing while its tree is killed
        while tree := _tree(process.pid) - {process.pid}:
            for pid in tree:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            await asyncio.sleep(_POLL_SECONDS)
        process.kill()
        if not await process.wait_until_gone(_KILL_SECONDS):
            raise RuntimeFailed(f"Process {process.pid} does not end")
    _reap(process.pid)


def _reap(pid: int) -> None:
    """Reap a process that has ended, if it is our child."""
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def _tree(pid: int) -> set[int]:
    return find_tree(pid, {one: _parent(one) for one in list_pids()})


def _resident_bytes(pid: int) -> int:
    try:
        return read_resident_bytes(pid)
    except OSError:  # it has ended meanwhile
        return 0


def _parent(pid: int) -> int | None:
    """Return the parent of a running process, None for a zombie."""
    fields = read_stat(pid)
    return None if fields[0] in {b"Z", b"X"} else int(fields[1])


def _make_folder(folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder
