"""The Docker runtime: a container of a Docker Engine for each agent, its folders as volumes (decision 0054).

Containers and volumes are found by labels with the mark of the data folder. The warden is reached by a bridge alone, so
the engine may run on another machine, and containers have no network.
"""

import asyncio
import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from roost.core import ids
from roost.core.machine import process_priority
from roost.core.machine.private_file import write_private_file
from roost.core.machine.unix_socket import Stream, StreamHandler
from roost.core.problem import Problem
from roost.drivers.runtime.bridge import Bridge
from roost.drivers.runtime.bridges import Bridges
from roost.drivers.runtime.bwrap.agent_paths import validate_name
from roost.drivers.runtime.contract import (
    HOME,
    WORKSPACE,
    Capabilities,
    Container,
    ContainerSpec,
    ContainerStartTimedOut,
    RelayListener,
    Runtime,
    RuntimeFailed,
)
from roost.drivers.runtime.docker import plan
from roost.drivers.runtime.docker.carrier import open_exec_carrier
from roost.drivers.runtime.docker.disk_meter import VolumeMeter
from roost.drivers.runtime.docker.engine_api import EngineApi, suppress_status
from roost.drivers.runtime.docker.images import DockerImages, Software
from roost.drivers.runtime.docker.plan import Volumes
from roost.drivers.runtime.docker.probe import docker_enforcement
from roost.drivers.runtime.docker.seccomp_profile import seccomp_profile
from roost.drivers.runtime.docker.volumes import ReadOnlyVolumes, create_volume, delete_volume
from roost.drivers.runtime.probe_facts import read_facts
from roost.warden_client.client import WardenClient

_START_SECONDS = 60.0
_DATA, _AGENT, _DELETE_ONLY = "roost.data", "roost.agent", "roost.delete-only"
_PROBE, _PROFILE = "probe-", "run/seccomp.json"


class DockerRuntime(Runtime):
    """Containers of one data folder in one Docker Engine.

    mark: name of the data folder, which no other server of that engine has. folder: it is on the disk whose space
    counts. images: makes what containers are made from. oci_runtime: of the containers, such as `runsc`; the
    engine's default if it is empty.
    """

    name = "docker"

    def __init__(self, mark: str, folder: Path, api: EngineApi, images: DockerImages, oci_runtime: str = "") -> None:
        self._api, self.images, self._oci_runtime, self._folder = api, images, oci_runtime, folder
        self._mark = hashlib.sha256(mark.encode()).hexdigest()[:12]
        self._read_only = ReadOnlyVolumes(api)
        self._bridges = Bridges(self._open_carrier)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self.disk = VolumeMeter(self._api, folder, self._volumes)
        self._known: dict[str, Container] = {}
        self._slots = 1

    def take_priority(self) -> None:
        process_priority.raise_own_priority()

    def prefer(self, agent_id: str) -> None:
        """Do nothing: the engine's shares do not change within a request's time."""

    def start_slots(self) -> int:
        return self._slots

    async def probe(self) -> Capabilities:
        agent_id = f"{_PROBE}{ids.new_host_label(10)}"
        try:
            info = await self._api.call("GET", "/info")
            self._slots = max(1, info["NCPU"])
            await self.images.ensure(None, pulls=False)
            await self.start(ContainerSpec(agent_id, egress="proxy"))
            facts = await read_facts(WardenClient(partial(self.connect, agent_id)), plan.PYTHON[0])
            return Capabilities(usable=True, enforcement=docker_enforcement(info, facts, self._oci_runtime))
        except (Problem, OSError, ValueError, KeyError) as error:
            return Capabilities(usable=False, error=str(error))
        finally:
            with suppress(Problem):
                await self.delete(agent_id)

    async def start(self, spec: ContainerSpec) -> Container:
        async with self._lock(spec.agent_id):
            present = await self._inspect(spec.agent_id)
            if present is not None and present["State"]["Running"]:
                container = _to_container(present)
                if container.delete_only == spec.delete_only:
                    return container
            if present is not None:
                await self._remove(spec.agent_id)
            software = await self.images.ensure(spec.engine, report_wait=spec.report_wait)
            try:
                async with asyncio.timeout(_START_SECONDS):
                    return await self._start(spec, software)
            except BaseException as error:
                await asyncio.shield(self._remove(spec.agent_id))
                if isinstance(error, TimeoutError):
                    raise ContainerStartTimedOut(
                        f"The container did not answer within {_START_SECONDS:.0f} s"
                    ) from None
                raise

    async def stop(self, agent_id: str, grace: float = 5.0) -> None:
        async with self._lock(agent_id):
            with suppress_status():
                if grace > 0:
                    await self._api.call("POST", f"/containers/{self._name(agent_id)}/stop", t=max(1, round(grace)))
            await self._remove(agent_id)

    async def delete(self, agent_id: str) -> None:
        async with self._lock(agent_id):
            await self._remove(agent_id)
            for volume in self._volumes(agent_id).values():
                await delete_volume(self._api, volume)

    async def list(self) -> Sequence[Container]:
        filters = {"label": [f"{_DATA}={self._mark}"]}
        listed = await self._api.call("GET", "/containers/json", all=1, filters=filters)
        running: dict[str, Container] = {}
        for entry in listed:
            agent_id = entry["Labels"][_AGENT]
            if agent_id.startswith(_PROBE):
                continue
            if entry["State"] == "running":
                if known := self._known.get(entry["Id"]):  # a container runs once
                    running[entry["Id"]] = known
                elif found := await self._inspect(agent_id):
                    running[entry["Id"]] = _to_container(found)
                self._bridges.keep(agent_id)
            elif agent_id not in self._locks:  # its start was interrupted, or it ended by itself
                await self.stop(agent_id, 0)
        self._known = running
        return list(running.values())

    async def read_memory(self, agent_ids: Collection[str]) -> Mapping[str, int]:
        found = await asyncio.gather(*map(self._read_memory, agent_ids))
        return {agent: size for agent, size in zip(agent_ids, found, strict=True) if size is not None}

    async def list_stored(self) -> Collection[str]:
        filters = {"label": [f"{_DATA}={self._mark}"]}
        listed = await self._api.call("GET", "/volumes", filters=filters)
        return {volume["Labels"][_AGENT] for volume in listed["Volumes"] or ()}

    async def connect(self, agent_id: str) -> Stream:
        return await self._bridges.connect(agent_id)

    async def listen(self, agent_id: str, relay: str, handler: StreamHandler) -> RelayListener:
        return await self._bridges.listen(agent_id, relay, handler)

    async def _start(self, spec: ContainerSpec, software: Software) -> Container:
        labels = self._labels(spec.agent_id)
        volumes = self._volumes(spec.agent_id)
        files = plan.read_only_files(spec)
        ensures = [self._read_only.ensure(found.name, found.folder, software.image, found.pack) for found in files]
        creates = [create_volume(self._api, volume, labels) for volume in volumes.values()]
        filled, _ = await asyncio.gather(asyncio.gather(*ensures), asyncio.gather(*creates))
        read_only = {**software.volumes, **dict(zip((found.folder for found in files), filled, strict=True))}
        labels[_DELETE_ONLY] = str(spec.delete_only).lower()
        mounts, security = Volumes(volumes, read_only), await self._security()
        body = plan.container_body(spec, software.image, labels, mounts, self._oci_runtime, security)
        name = self._name(spec.agent_id)
        await self._api.call("POST", "/containers/create", body, name=name)
        await self._api.call("POST", f"/containers/{name}/start")
        ping = WardenClient(partial(self.connect, spec.agent_id)).ping()
        started, _ = await asyncio.gather(self._inspect(spec.agent_id), ping)
        self._bridges.keep(spec.agent_id)
        if started is None or not started["State"]["Running"]:
            raise RuntimeFailed("The container ended at once")
        return _to_container(started)

    async def _security(self) -> Sequence[str]:
        """Return the options of containers in which Podman differs: it wants the profile's path on its machine."""
        profile = json.dumps(seccomp_profile())
        if not await self._api.is_podman():
            return [f"seccomp={profile}"]
        path = self._folder / _PROFILE
        if not path.exists() or path.read_text() != profile:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_private_file(path, profile)
        return [f"seccomp={path}", "mask=/sys"]

    async def _read_memory(self, agent_id: str) -> int | None:
        with suppress_status():
            options = {"stream": "false", "one-shot": "true"}
            used = (await self._api.call("GET", f"/containers/{self._name(agent_id)}/stats", **options))["memory_stats"]
            if "usage" in used:  # otherwise it does not run
                return used["usage"] - _reclaimable(used.get("stats", {}))
        return None

    async def _remove(self, agent_id: str) -> None:
        await self._bridges.drop(agent_id)
        with suppress_status():
            await self._api.call("DELETE", f"/containers/{self._name(agent_id)}", force=1)

    async def _inspect(self, agent_id: str) -> Mapping[str, Any] | None:
        with suppress_status():
            return await self._api.call("GET", f"/containers/{self._name(agent_id)}/json")
        return None

    async def _open_carrier(self, agent_id: str, bridge: Bridge) -> None:
        await open_exec_carrier(self._api, self._name(agent_id), bridge)

    def _name(self, agent_id: str) -> str:
        """Return the name of an agent's container. Raises RuntimeFailed."""
        validate_name(agent_id)
        return f"roost-{self._mark}-{agent_id}"

    def _volumes(self, agent_id: str) -> Mapping[str, str]:
        name = self._name(agent_id)
        return {WORKSPACE: f"{name}-workspace", HOME: f"{name}-home"}

    def _labels(self, agent_id: str) -> dict[str, str]:
        return {_DATA: self._mark, _AGENT: agent_id}

    def _lock(self, agent_id: str) -> asyncio.Lock:
        return self._locks.setdefault(agent_id, asyncio.Lock())


def _to_container(inspected: Mapping[str, Any]) -> Container:
    labels, state = inspected["Config"]["Labels"], inspected["State"]
    started = datetime.fromisoformat(state["StartedAt"][:19] + "+00:00")
    return Container(labels[_AGENT], state["Pid"] or None, started, labels[_DELETE_ONLY] == "true")


def _reclaimable(stats: Mapping[str, int]) -> int:
    """Return the cache that the kernel can reclaim, by the names of both versions of control groups."""
    return stats.get("total_inactive_file", stats.get("inactive_file", 0))
