"""Maintenance of what all pods share, by each server: the network policy, and what others left behind."""

import asyncio
import math

from roost.core import clock, log
from roost.core.problem import Problem
from roost.drivers.runtime.kubernetes import plan
from roost.drivers.runtime.kubernetes.agent_objects import AgentObjects
from roost.drivers.runtime.kubernetes.plan import ClusterOptions
from roost.drivers.runtime.kubernetes.pod_state import PodState
from roost.drivers.runtime.kubernetes.watch import Reflector

_PERIOD_SECONDS = 600.0
_PROBE_SECONDS = 1800.0  # one may wait for its image
_log = log.get_logger("kubernetes")


class ClusterMaintenance:
    """Keeps the policy as planned, and removes pods and claims of dead servers' probes, and files of other versions."""

    def __init__(self, objects: AgentObjects, pods: Reflector[PodState], options: ClusterOptions) -> None:
        self._objects, self._pods, self._options = objects, pods, options
        self._lock, self._ran_at = asyncio.Lock(), -math.inf

    async def run_if_due(self) -> None:
        """Run once in this process, and again after ten minutes."""
        async with self._lock:
            if clock.monotonic_seconds() - self._ran_at > _PERIOD_SECONDS:
                await self.run()

    async def run(self) -> None:
        """Run now, with the pods as the watch knows them. Raises if the policy cannot be made."""
        await self._objects.shared.ensure_policy()
        self._ran_at = clock.monotonic_seconds()
        pods = list(self._pods.objects.values())
        try:
            for found in pods:
                if plan.is_probe(found.agent_id) and found.age_seconds > _PROBE_SECONDS:
                    await self._objects.delete_pod(self._options.object_name(found.agent_id), 0, found.uid)
            await self._objects.delete_old_probes(_PROBE_SECONDS)
            await self._objects.shared.remove_unused_files(frozenset[str]().union(*(found.maps for found in pods)))
        except Problem as problem:
            _log.warning("leftovers.not_removed", reason=problem.message)
