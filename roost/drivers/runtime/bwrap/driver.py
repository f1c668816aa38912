"""The bwrap runtime: containers as plain processes of this machine, without a daemon (decision 0004).

A container is two processes, bwrap's monitor and the warden. They outlive the server, and `run/<id>/container.json`
lets the next server find them. A record is valid only with the process's start time and boot id. A process with our
mark but without a record belongs to an interrupted start, and is killed.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from weakref import WeakValueDictionary

from roost.core import log
from roost.core.machine import cpu_load, process_priority, unix_socket
from roost.core.machine.unix_socket import Stream, StreamHandler
from roost.drivers.runtime.bwrap import cgroup, launch, record
from roost.drivers.runtime.bwrap.agent_paths import AgentPaths, claim_start, is_start_claimed
from roost.drivers.runtime.bwrap.disk_meter import HostDiskMeter
from roost.drivers.runtime.bwrap.probe import is_recent_probe, probe_runtime
from roost.drivers.runtime.bwrap.record import ContainerRecord
from roost.drivers.runtime.bwrap.start import ContainerStarter, EngineFolders, get_controllers, no_engine_folders
from roost.drivers.runtime.bwrap.tools import SYSTEM_PYTHON
from roost.drivers.runtime.contract import (
    Capabilities,
    Container,
    ContainerSpec,
    ContainerStartTimedOut,
    RelayListener,
    Runtime,
    RuntimeFailed,
)
from roost.warden_client.errors import ContainerNotRunning

_START_SECONDS = 10.0
_CONNECT_SECONDS = 5.0  # for overloaded machines; without a warden the connection is refused at once
_END_SECONDS = 10.0
_REPLACE_SECONDS = 5.0
_MONITOR_SECONDS = 2.0
PREFERRED_WEIGHT = 20
_PREFERRED_SECONDS = 10.0

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
        self.disk = HostDiskMeter(self._paths.folder)
        self._starter = ContainerStarter(self._paths, self.connect, engine_folders, bwrap, system_python)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._preferred = PreferredContainers(self._starter.group_name)

    def take_priority(self) -> None:
        process_priority.raise_own_priority()
        process_priority.record_own_group(get_controllers().server_group, self._paths.folder)
        for agent_id in self._paths.list_agents():  # preferred ones of a killed server
            get_controllers().set_weight(self._starter.group_name(agent_id), 1)

    def prefer(self, agent_id: str) -> None:
        self._preferred.add(agent_id)

    def start_slots(self) -> int:
        cpus = min(cpu_load.count_cpus(), get_controllers().cpu_quota())
        return max(1, int(cpus / 2 if cpu_load.is_cpu_pressed() else cpus))

    async def probe(self) -> Capabilities:
        return await probe_runtime(self, self._starter)

    async def start(self, spec: ContainerSpec) -> Container:
        async with self._lock(spec.agent_id):
            present = self._load_record(spec.agent_id)
            if present and present.is_alive() and present.delete_only == spec.delete_only:
                return present.to_container()
            await self._stop(spec.agent_id, _REPLACE_SECONDS)
            return await self._start(spec)

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
        # In this order, so that a container that starts meanwhile, by any process, is claimed or has a record.
        starting = {agent for agent in {agent for agent, _ in marked} if is_start_claimed(self._paths, agent)}
        records = [found for agent_id in self._paths.list_agents() if (found := self._load_record(agent_id))]
        recorded = {process for found in records for process in found.processes()}
        orphans = [(agent, process) for agent, process in marked if agent not in starting and process not in recorded]
        if orphans:
            _log.warning("container.ended", reason="no record", agents=sorted({agent for agent, _ in orphans}))
            await _kill_all([process for _, process in orphans])
        launch.reap_monitors()
        return [found.to_container() for found in records if found.is_alive() and not is_recent_probe(found)]

    async def read_memory(self, agent_ids: Collection[str]) -> Mapping[str, int]:
        groups = {agent_id: self._starter.control_groups(agent_id) for agent_id in agent_ids}
        used = await asyncio.to_thread(lambda: {agent: cgroup.used_memory(found) for agent, found in groups.items()})
        return {agent: size for agent, size in used.items() if size is not None}

    async def list_stored(self) -> Collection[str]:
        return self._paths.list_stored()

    async def connect(self, agent_id: str) -> Stream:
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                return await unix_socket.connect_unix(self._paths.socket(agent_id))
        except OSError:  # includes TimeoutError
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
                with claim_start(self._paths, spec.agent_id):
                    return (await self._starter.start(spec)).to_container()
        except BaseException as error:
            await asyncio.shield(self._remove_remains(spec.agent_id))
            if isinstance(error, TimeoutError):
                raise ContainerStartTimedOut(f"The container did not answer within {_START_SECONDS:.0f} s") from None
            if isinstance(error, OSError):
                raise RuntimeFailed(f"The container could not be started: {error}") from error
            raise

    async def _stop(self, agent_id: str, grace: float) -> None:
        self._preferred.discard(agent_id)
        present = self._load_record(agent_id)
        if present and present.is_alive():
            if grace > 0:
                present.warden.kill(signal.SIGTERM)
            if not await present.warden.wait_until_gone(grace):
                present.warden.kill()
            # The kernel ends all other processes of the container before its pid 1.
            if not await present.warden.wait_until_gone(_END_SECONDS):
                raise RuntimeFailed("The container does not end; a process may hang in the kernel")
            await present.monitor.wait_until_gone(_MONITOR_SECONDS)
        await self._remove_remains(agent_id)

    async def _remove_remains(self, agent_id: str) -> None:
        """Kill the processes of a container, and remove its groups, record and socket."""
        if not self._paths.socket(agent_id).exists():  # no bwrap was started since the last removal
            await cgroup.remove_ended_groups(self._starter.control_groups(agent_id))
            return
        present = self._load_record(agent_id)
        marked = await asyncio.to_thread(record.find_marked, self._paths.mark)
        remains = {process for agent, process in marked if agent == agent_id}
        await _kill_all(remains.union(present.processes() if present else ()))
        launch.reap_monitors()
        groups = {*(present.groups if present else ()), *self._starter.control_groups(agent_id)}
        if killed := cgroup.count_oom_kills(groups):
            _log.warning("container.memory_exhausted", agent=agent_id, processes_killed=killed)
        await cgroup.remove_ended_groups(groups)
        self._paths.record(agent_id).unlink(missing_ok=True)
        self._paths.socket(agent_id).unlink(missing_ok=True)

    def _load_record(self, agent_id: str) -> ContainerRecord | None:
        found = record.load_record(self._paths.record(agent_id))
        # A copy of the data folder has the records of the original's containers; earlier versions recorded no mark.
        return found if found is not None and found.mark in ("", self._paths.mark) else None

    def _lock(self, agent_id: str) -> asyncio.Lock:
        return self._locks.setdefault(agent_id, asyncio.Lock())


class PreferredContainers:
    """Containers that requests wait for, which get more processor time than those that work by themselves.

    Agents share what the server leaves. If all of them compute without a pause, each gets an equal part of it, and a
    request to one would wait for all others. A container is preferred for a fixed time after each request, so that an
    agent cannot prolong it, and only against its siblings.
    """

    def __init__(self, group_name: Callable[[str], str], seconds: float = _PREFERRED_SECONDS) -> None:
        self._group_name = group_name
        self._seconds = seconds
        self._ends: dict[str, float] = {}

    def add(self, agent_id: str) -> None:
        """Prefer a container from now on; a file is written only if it was not preferred before."""
        loop = asyncio.get_running_loop()
        is_preferred = agent_id in self._ends
        self._ends[agent_id] = loop.time() + self._seconds
        if not is_preferred:
            self._set_weight(agent_id, PREFERRED_WEIGHT)
            loop.call_later(self._seconds, self._check_end, agent_id)

    def discard(self, agent_id: str) -> None:
        """Forget a container that has ended."""
        self._ends.pop(agent_id, None)

    def _check_end(self, agent_id: str) -> None:
        if agent_id not in self._ends:
            return
        loop = asyncio.get_running_loop()
        if (remaining := self._ends[agent_id] - loop.time()) > 0:
            loop.call_later(remaining, self._check_end, agent_id)
        else:
            del self._ends[agent_id]
            self._set_weight(agent_id, 1)

    def _set_weight(self, agent_id: str, factor: int) -> None:
        with suppress(OSError):  # the container has just ended
            get_controllers().set_weight(self._group_name(agent_id), factor)


async def _kill_all(processes: Collection[record.HostProcess]) -> None:
    for process in processes:
        process.kill()
    for process in processes:
        if not await process.wait_until_gone(_END_SECONDS):
            _log.warning("process.kill_failed", pid=process.pid)
