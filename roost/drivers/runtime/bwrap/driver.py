"""The bwrap runtime: containers as plain processes of this machine, without a daemon.

A container is two processes, bwrap's monitor and the warden. They outlive the server, and `run/<id>/container.json`
lets the next server find them. A record counts only with the process's start time and boot id. A process with our
mark but without a record was cut off in its start, and is ended.
"""

import asyncio
import os
import signal
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from weakref import WeakValueDictionary

from roost.core import log, unix_socket
from roost.core.unix_socket import Stream, StreamHandler
from roost.drivers.runtime.bwrap import cgroup, launch, record
from roost.drivers.runtime.bwrap.agent_paths import AgentPaths
from roost.drivers.runtime.bwrap.probe import examine
from roost.drivers.runtime.bwrap.record import ContainerRecord
from roost.drivers.runtime.bwrap.start import ContainerStarter, EngineFolders, no_engine_folders
from roost.drivers.runtime.bwrap.tools import SYSTEM_PYTHON
from roost.drivers.runtime.contract import (
    Capabilities,
    Container,
    ContainerNotRunning,
    ContainerSpec,
    RelayListener,
    Runtime,
    RuntimeFailed,
)

_START_SECONDS = 10.0
_CONNECT_SECONDS = 5.0  # an overloaded machine is slow; a warden that is gone refuses at once
_END_SECONDS = 10.0
_MONITOR_SECONDS = 2.0
_GROUPS_SECONDS = 2.0
_PAUSE_SECONDS = 0.005

_log = log.get_logger("bwrap")


class BwrapRuntime(Runtime):
    """Containers of one data folder.

    bwrap: replaces the program that comes with Roost. claims: the folder in which all servers of this machine record
    the host uids of agents. system_python: the preferred interpreter of wardens.
    """

    name = "bwrap"

    def __init__(
        self,
        folder: Path,
        engine_folders: EngineFolders = no_engine_folders,
        *,
        bwrap: Path | None = None,
        claims: Path | None = None,
        system_python: Path = SYSTEM_PYTHON,
    ) -> None:
        self._paths = AgentPaths(folder, claims)
        self._starter = ContainerStarter(self._paths, self.connect, engine_folders, bwrap, system_python)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._starting: set[str] = set()

    async def probe(self) -> Capabilities:
        return await examine(self, self._starter)

    async def start(self, spec: ContainerSpec) -> Container:
        async with self._lock(spec.agent_id):
            present = self._record(spec.agent_id)
            if present and present.alive():
                return present.container()
            await self._clear(spec.agent_id)
            self._starting.add(spec.agent_id)
            try:
                return await self._start(spec)
            finally:
                self._starting.discard(spec.agent_id)

    async def stop(self, agent_id: str, grace: float = 5.0) -> None:
        async with self._lock(agent_id):
            await self._stop(agent_id, grace)

    async def delete(self, agent_id: str) -> None:
        async with self._lock(agent_id):
            await self._stop(agent_id, 0)
            try:
                await asyncio.to_thread(self._paths.remove, agent_id)
            except OSError as error:
                raise RuntimeFailed(f"The agent's files could not be removed: {error}") from error

    async def list(self) -> Sequence[Container]:
        marked = await asyncio.to_thread(record.find_marked, self._paths.mark)
        # In this order: what starts meanwhile is either still starting here, or on record below.
        starting = set(self._starting)
        found = [one for agent_id in self._paths.known() if (one := self._record(agent_id))]
        recorded = {process for one in found for process in one.processes()}
        cut_off = [(agent, one) for agent, one in marked if agent not in starting and one not in recorded]
        if cut_off:
            _log.warning(
                "container.ended", reason="it is not on record", agents=sorted({agent for agent, _ in cut_off})
            )
            await _end([one for _, one in cut_off])
        launch.reap()
        return [one.container() for one in found if one.alive()]

    async def connect(self, agent_id: str) -> Stream:
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                return await unix_socket.connect_unix(self._paths.socket(agent_id))
        except OSError:  # a time-out is one
            raise ContainerNotRunning from None

    async def listen(self, agent_id: str, relay: str, handler: StreamHandler) -> RelayListener:
        path = self._paths.relay(agent_id, relay)
        try:
            uid = self._paths.prepare(agent_id)
            listener = unix_socket.listen_unix(path)
            if uid is not None:
                os.chown(path, uid, uid, follow_symlinks=False)
            return await unix_socket.serve_unix(listener, handler)
        except OSError as error:
            raise RuntimeFailed(f"The agent's relay {relay} cannot be opened: {error}") from error

    async def _start(self, spec: ContainerSpec) -> Container:
        try:
            async with asyncio.timeout(_START_SECONDS):
                return (await self._starter.start(spec)).container()
        except BaseException as error:
            await asyncio.shield(self._clear(spec.agent_id))
            if isinstance(error, TimeoutError):
                raise RuntimeFailed(f"The container did not answer within {_START_SECONDS:.0f} s") from None
            if isinstance(error, OSError):
                raise RuntimeFailed(f"The container could not be started: {error}") from error
            raise

    async def _stop(self, agent_id: str, grace: float) -> None:
        present = self._record(agent_id)
        if present and present.alive():
            if grace > 0:
                present.warden.kill(signal.SIGTERM)
            if not await present.warden.gone(grace):
                present.warden.kill()
            # The kernel ends all others in the container before it lets its pid 1 go.
            if not await present.warden.gone(_END_SECONDS):
                raise RuntimeFailed("The container does not end; a process in it may hang in the kernel")
            await present.monitor.gone(_MONITOR_SECONDS)
        await self._clear(agent_id)

    async def _clear(self, agent_id: str) -> None:
        """End and remove the remains of a container, but not the agent's folders or relay sockets."""
        if not self._paths.socket(agent_id).exists():  # no bwrap was started since the last time
            await _drop(self._starter.groups(agent_id))
            return
        present = self._record(agent_id)
        marked = await asyncio.to_thread(record.find_marked, self._paths.mark)
        left = {process for agent, process in marked if agent == agent_id}
        await _end(left.union(present.processes() if present else ()))
        launch.reap()
        groups = {*(present.groups if present else ()), *self._starter.groups(agent_id)}
        if killed := cgroup.oom_kills(groups):
            _log.warning("container.memory_exhausted", agent=agent_id, processes_killed=killed)
        await _drop(groups)
        self._paths.record(agent_id).unlink(missing_ok=True)
        self._paths.socket(agent_id).unlink(missing_ok=True)

    def _record(self, agent_id: str) -> ContainerRecord | None:
        return record.load(self._paths.record(agent_id))

    def _lock(self, agent_id: str) -> asyncio.Lock:
        return self._locks.setdefault(agent_id, asyncio.Lock())


async def _end(processes: Collection[record.HostProcess]) -> None:
    for process in processes:
        process.kill()
    for process in processes:
        if not await process.gone(_END_SECONDS):
            _log.warning("process.kill_failed", pid=process.pid)


async def _drop(groups: Collection[Path]) -> None:
    with suppress(TimeoutError):  # an empty group that stays costs little and is taken again
        async with asyncio.timeout(_GROUPS_SECONDS):
            while not cgroup.remove(groups):  # noqa: ASYNC110 - the kernel tells nobody when a group is empty
                await asyncio.sleep(_PAUSE_SECONDS)
