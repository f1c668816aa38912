"""Stops agents that fill the disk: those above their own limit, and those that write when only the reserve is left.

Few file systems have quotas, so the server watches instead. It reads the free space every second, which costs nothing,
and counts the agents' files slowly: every ten minutes, or soon after the free space shrank. A container over the limit
is stopped; the reconciler starts it again, and `find_excess` makes that a container in which files can only be deleted.
A disk can be full before the writer is known: once it is stopped, the ballast gives the database space to record that.
Decision 0021 says why.
"""

from collections.abc import Callable, Mapping

from roost.core import clock, log
from roost.core.machine.disk_space import DiskBallast, DiskSpace
from roost.core.machine.threads import run_in_daemon_thread
from roost.core.periodic import PeriodicTask
from roost.core.problem import Problem
from roost.drivers.runtime.contract import DiskUsage, Runtime

_WATCH_SECONDS, _MEASURE_SECONDS, _SHORTEST_PAUSE_SECONDS = 1.0, 600.0, 30.0
_NEAR = 2
"""Multiple of the reserve below which writers are observed, so that they are known when the reserve is reached.

An agent that was stopped then may write again when so much is free; the released ballast alone is less.
"""
_NOTICEABLE_BYTES = 1024**2
_GIB = 1024**3
_REMEDY = "Its files can only be read and deleted now: delete some with `roost exec`, then restart the agent."

_log = log.get_logger("disk")


class DiskGuard:
    def __init__(self, runtime: Runtime, limit: int | None, reserve: int, ballast: DiskBallast | None) -> None:
        """`limit` is the space of one agent, `reserve` the free space of their disk, in bytes."""
        self._runtime = runtime
        self._ballast = ballast
        self._limit = limit
        self._reserve = reserve
        self._stopped: dict[str, bool] = {}  # agents, and whether the reserve was the reason
        self._written: Mapping[str, int] | None = None
        self._sizes: Mapping[str, int] | None = None
        self._most_free = 0  # since the last count
        self._counted_at = 0.0
        self._on_stop: Callable[[], None] = lambda: None
        self._watch = PeriodicTask("disk watch", self.check_space, _WATCH_SECONDS)
        self._measure = PeriodicTask("disk measure", self.measure_agents, _MEASURE_SECONDS)

    async def start(self, on_stop: Callable[[], None]) -> None:
        """Begin, before agents start; `on_stop` is called when a container was stopped, so that it is noticed at once.

        Agents that an earlier server stopped stay so until they were counted.
        """
        self._on_stop = on_stop
        restricted = [found.agent_id for found in await self._runtime.list() if found.delete_only]
        self._stopped = dict.fromkeys(restricted, True) | self._stopped
        self._watch.start()
        self._measure.start()

    async def stop(self) -> None:
        await self._watch.stop()
        await self._measure.stop()

    async def find_excess(self, agent_id: str) -> str | None:
        """Return why an agent that was stopped may still not write; None if it may, or never was stopped."""
        if self._runtime.is_shared:  # another server may have stopped it before it was this one's
            found = await self._runtime.find_container(agent_id)
            if found is not None and found.delete_only:
                self._stopped.setdefault(agent_id, True)
        if agent_id not in self._stopped:
            return None
        usage = await self._runtime.disk.measure(agent_id, paced=False)
        reason = self._describe_excess(usage)
        if reason is None and self._stopped[agent_id] and self._is_near(self._runtime.disk.read_space()):
            reason = f"The disk of the server is almost full, and the agent wrote to it. {_REMEDY}"
        if reason is None:
            self._stopped.pop(agent_id, None)
        return reason

    async def check_space(self) -> None:
        """Stop the containers that write while less than the reserve is free; plan a count when space shrank."""
        space = self._runtime.disk.read_space()
        if not self._is_near(space):
            self._written = None
            await self._occupy_ballast()
        else:
            containers, before = await self._runtime.list(), self._written
            self._written = await run_in_daemon_thread(lambda: self._runtime.disk.written_bytes(containers))
            if not space.leaves(self._reserve) and await self._stop_greatest(_growth(before, self._written)):
                self._release_ballast()
        self._most_free = max(self._most_free, space.free)
        if self._is_count_due(space):
            self._measure.wake()

    async def measure_agents(self) -> None:
        """Count the files of the running agents and stop those above the limit."""
        self._most_free = self._runtime.disk.read_space().free
        sizes: dict[str, int] = {}
        for container in await self._runtime.list():
            if container.delete_only:
                continue
            try:
                usage = await self._runtime.disk.measure(container.agent_id, paced=True)
            except (Problem, OSError) as error:
                _log.warning("agent.disk_unreadable", agent=container.agent_id, reason=str(error))
                continue
            sizes[container.agent_id] = usage.size
            if (reason := self._describe_excess(usage)) is not None:
                await self._stop(container.agent_id, reason, at_reserve=False)
        before, self._sizes, self._counted_at = self._sizes, sizes, clock.monotonic_seconds()
        if not self._runtime.disk.read_space().leaves(self._reserve):
            await self._stop_greatest(_growth(before, sizes))  # space can be allocated without writing (fallocate)
            self._release_ballast()

    def _is_near(self, space: DiskSpace) -> bool:
        return space.free < _NEAR * space.reserved(self._reserve)

    def _is_count_due(self, space: DiskSpace) -> bool:
        step = space.reserved(self._reserve) // 4
        if self._limit is not None:
            step = min(step, self._limit // 8)
        if self._most_free - space.free < max(step, _NOTICEABLE_BYTES):
            return False
        is_pressing = not space.leaves(self._reserve)
        return is_pressing or clock.monotonic_seconds() - self._counted_at > _SHORTEST_PAUSE_SECONDS

    def _describe_excess(self, usage: DiskUsage) -> str | None:
        if not usage.is_complete:
            return f"The agent has too many files or too deep folders to count. {_REMEDY}"
        if self._limit is None or usage.size <= self._limit:
            return None
        used, limit = usage.size / _GIB, self._limit / _GIB
        return f"The agent uses {used:,.2f} GiB of disk space, more than its limit of {limit:,.2f} GiB. {_REMEDY}"

    async def _stop_greatest(self, grown: Mapping[str, int]) -> bool:
        """Stop the agents that grew most, and those at least half as fast; return whether there were any."""
        least = max(max(grown.values(), default=0) / 2, _NOTICEABLE_BYTES)
        greatest = {agent_id: size for agent_id, size in grown.items() if size >= least}
        for agent_id, size in greatest.items():
            await self._stop(agent_id, f"{size} bytes written while the disk is almost full", at_reserve=True)
        return bool(greatest)

    async def _occupy_ballast(self) -> None:
        if self._ballast is None:
            return
        try:
            await run_in_daemon_thread(self._ballast.occupy)
        except OSError as error:  # the file system cannot; the next server tries again
            self._ballast = None
            _log.warning("ballast.refused", reason=str(error))

    def _release_ballast(self) -> None:
        if self._ballast is not None and self._ballast.release():
            _log.warning("ballast.released", reason="the disk is full")

    async def _stop(self, agent_id: str, reason: str, *, at_reserve: bool) -> None:
        self._stopped[agent_id] = at_reserve
        _log.warning("agent.disk_limit_reached", agent=agent_id, reason=reason)
        try:
            await self._runtime.stop(agent_id, grace=0)
        except Problem as problem:  # the next check tries again
            _log.error("container.stop_failed", agent=agent_id, reason=problem.message)
        self._on_stop()


def _growth(before: Mapping[str, int] | None, now: Mapping[str, int]) -> Mapping[str, int]:
    """Return the growth of each agent since the values before, if there are any; a new agent grew from nothing."""
    if before is None:
        return {}
    return {agent_id: size - before.get(agent_id, 0) for agent_id, size in now.items()}
