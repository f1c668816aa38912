"""Measures the volumes of agents as the engine counts them; their files are on its disk, perhaps of another machine."""

import asyncio
import math
from collections.abc import Callable, Mapping
from pathlib import Path

from roost.core import clock
from roost.drivers.runtime.bwrap.disk_meter import HostDiskMeter
from roost.drivers.runtime.contract import DiskUsage
from roost.drivers.runtime.docker.engine_api import EngineApi

_RECENT_SECONDS = 20.0


class VolumeMeter(HostDiskMeter):
    """Meter of the volumes that `volumes` returns by path for an agent."""

    def __init__(self, api: EngineApi, folder: Path, volumes: Callable[[str], Mapping[str, str]]) -> None:
        super().__init__(folder)
        self._api, self._volumes = api, volumes
        self._lock = asyncio.Lock()
        self._sizes: Mapping[str, int] = {}
        self._counted_at = -math.inf

    async def measure(self, agent_id: str, *, paced: bool) -> DiskUsage:
        """Return the size of an agent's volumes; the engine counts all at once, so `paced` takes a recent count.

        Raises the errors of EngineApi.
        """
        async with self._lock:
            if not paced or clock.monotonic_seconds() - self._counted_at > _RECENT_SECONDS:
                usage = await self._api.call("GET", "/system/df", type="volume")
                self._sizes = {volume["Name"]: volume["UsageData"]["Size"] for volume in usage["Volumes"] or ()}
                self._counted_at = clock.monotonic_seconds()
        sizes = [self._sizes[name] for name in self._volumes(agent_id).values() if name in self._sizes]
        return DiskUsage(sum(max(size, 0) for size in sizes), is_complete=min(sizes, default=0) >= 0)
