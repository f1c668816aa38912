"""Collects the garbage of agents' repositories: once a week, and daily in a large one, if something was added."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta

from roost.agents.registry.repository import HostAgents
from roost.core import clock, log
from roost.core.periodic import PeriodicTask
from roost.core.problem import Problem
from roost.drivers.git.contract import MAX_REPOSITORY_BYTES, GarbageCollector, RepositoryUsage

ListCommits = Callable[[str], Awaitable[Sequence[str]]]
"""Lists the commits of an agent's snapshots, which a reset can make `main` again."""
_CHECK_SECONDS = 3600.0
_FIRST_CHECK_SECONDS = 300.0
_PERIOD, _PERIOD_OF_LARGE = timedelta(days=7), timedelta(days=1)
_LARGE_BYTES = MAX_REPOSITORY_BYTES // 2
_KEPT_FOR = timedelta(days=7)
"""Age at which an object that nothing needs is removed."""
_log = log.get_logger("git")


class RepositoryMaintenance:
    """Looks at the repositories of this host's agents every hour, and collects one after the other."""

    def __init__(self, host_agents: HostAgents, collector: GarbageCollector, list_commits: ListCommits) -> None:
        self._host_agents = host_agents
        self._collector = collector
        self._list_commits = list_commits
        self._task = PeriodicTask("git maintenance", self.collect_due, _CHECK_SECONDS)

    def start(self) -> None:
        self._task.start(delay=_FIRST_CHECK_SECONDS)

    async def stop(self) -> None:
        await self._task.stop()

    async def collect_due(self) -> None:
        """Collect the repositories whose time has come; log failures, after which the next check tries again."""
        for agent in await self._host_agents.list():
            now = clock.utc_now()
            usage = await self._collector.measure_usage(agent.id)
            if usage is None or not _is_due(usage, now):
                continue
            try:
                commits = await self._list_commits(agent.id)
                if await self._collector.collect_garbage(agent.id, commits, now - _KEPT_FOR):
                    _log.info("repository.collected", agent=agent.id, before=usage.size)
            except Problem as problem:
                _log.warning("repository.not_collected", agent=agent.id, reason=problem.message)


def _is_due(usage: RepositoryUsage, now: datetime) -> bool:
    period = _PERIOD_OF_LARGE if usage.size >= _LARGE_BYTES else _PERIOD
    return usage.changed_at > usage.collected_at and now - usage.collected_at >= period
