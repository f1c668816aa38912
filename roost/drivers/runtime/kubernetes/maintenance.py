"""Maintenance of what all pods share, by each server: the network policy, and what others left behind."""

import asyncio
import math
from collections.abc import AsyncGenerator, Awaitable

from roost.core import clock, log
from roost.core.periodic import PeriodicTask
from roost.drivers.runtime.kubernetes import plan
from roost.drivers.runtime.kubernetes.agent_objects import AgentObjects
from roost.drivers.runtime.kubernetes.plan import ClusterOptions
from roost.drivers.runtime.kubernetes.pod_state import PodState
from roost.drivers.runtime.kubernetes.shared_objects import remove_each
from roost.drivers.runtime.kubernetes.watch import Reflector

_PERIOD_SECONDS = 600.0
_PROBE_SECONDS = 1800.0  # one may wait for its image
_log = log.get_logger("kubernetes")


class ClusterMaintenance:
    """Keeps the policy as planned, and removes pods and claims of dead servers' probes, and files of other versions."""

    def __init__(self, objects: AgentObjects, pods: Reflector[PodState], options: ClusterOptions) -> None:
        self._objects, self._pods, self._options = objects, pods, options
        self._lock, self._ran_at = asyncio.Lock(), -math.inf
        self._leftovers = PeriodicTask("kubernetes leftovers", self.remove_leftovers, _PERIOD_SECONDS)

    async def run_if_due(self) -> None:
        """Run once in this process, and again after ten minutes."""
        async with self._lock:
            if clock.monotonic_seconds() - self._ran_at > _PERIOD_SECONDS:
                await self.run()

    async def run(self) -> None:
        """Make the policy, and begin to remove leftovers every ten minutes. Raises if the policy cannot be made."""
        await self._objects.shared.ensure_policy()
        if self._ran_at == -math.inf:
            self._leftovers.start()
        self._ran_at = clock.monotonic_seconds()

    async def remove_leftovers(self) -> None:
        """Remove what others left, with the pods as the watch knows them; what fails is tried again next time."""
        used = frozenset[str]().union(*(found.maps for found in self._pods.objects.values()))
        for remove in (
            lambda: remove_each(self._end_old_probes()),
            lambda: self._objects.delete_old_probes(_PROBE_SECONDS),
            lambda: self._objects.shared.remove_unused_files(used),
        ):
            try:
                await remove()
            except Exception as error:  # noqa: BLE001 - one kind of leftovers does not keep the others
                _log.warning("leftovers.not_removed", reason=str(error) or type(error).__name__)

    async def stop(self) -> None:
        """Remove no more leftovers. Idempotent."""
        await self._leftovers.stop()

    async def _end_old_probes(self) -> AsyncGenerator[Awaitable[object]]:
        for found in list(self._pods.objects.values()):
            if plan.is_probe(found.agent_id) and found.age_seconds > _PROBE_SECONDS:
                yield self._objects.delete_pod(self._options.object_name(found.agent_id), 0, found.uid)
