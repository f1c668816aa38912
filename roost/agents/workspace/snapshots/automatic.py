"""Automatic snapshots: one about a minute after the last change of a workspace, and of all changes before a stop."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import aclosing
from functools import partial

from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.model import AgentState
from roost.agents.registry.repository import HostAgents
from roost.agents.workspace.snapshots.model import SnapshotTrigger
from roost.agents.workspace.snapshots.service import SnapshotService
from roost.core import clock, log
from roost.core.periodic import PeriodicTask
from roost.core.problem import Problem
from roost.warden_client.errors import WardenWatchRefused
from roost.warden_client.tree import WardenTree

_CONCURRENCY = 4
_LONGEST_DELAYS = 10
"""A workspace that never rests is saved after this many delays."""
_BLIND_DELAYS = 10
"""A workspace that cannot be watched is compared this seldom."""
_CHECK_SECONDS = 5.0
_log = log.get_logger("snapshots")


class WorkspaceWatch:
    """Counts changes of a workspace, which can prove that there were none since the last commit.

    `on_change` is called for each, and when the watch begins: what was before is not known.

    committed: number of changes before the workspace was last read and committed, None if it was not since then.
    """

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self._changes = 0
        self._checks = asyncio.Queue[None]()
        self._waiting: deque[asyncio.Future[int]] | None = None
        self.committed: int | None = None

    async def run(self, tree: WardenTree) -> None:
        """Watch until the container is gone. Raises as `WardenTree.watch`."""
        try:
            async with aclosing(tree.watch(checks=self._list_checks())) as items:
                async for changed in items:
                    if changed.paths or not changed.is_complete or self._waiting is None:
                        self._waiting = self._waiting or deque()
                        self._changes += 1
                        self._on_change()
                    elif self._waiting and not (check := self._waiting.popleft()).done():
                        check.set_result(self._changes)
        finally:
            waiting, self._waiting = self._waiting or (), None
            for check in waiting:
                check.cancel()

    async def count_changes(self) -> int | None:
        """Return the number of changes until now, None if that is not known."""
        if self._waiting is None:
            return None
        check = asyncio.get_running_loop().create_future()
        self._waiting.append(check)
        self._checks.put_nowait(None)
        done, _ = await asyncio.wait([check], timeout=_CHECK_SECONDS)
        return check.result() if done and not check.cancelled() else None

    async def _list_checks(self) -> AsyncIterator[None]:
        while True:
            yield await self._checks.get()


class AutomaticSnapshots:
    """Watches the workspaces of this host's running agents."""

    def __init__(
        self, host_agents: HostAgents, runtimes: AgentRuntimes, snapshots: SnapshotService, delay: float = 60.0
    ) -> None:
        """`delay` is in seconds, from the last change to the snapshot."""
        self._host_agents = host_agents
        self._runtimes = runtimes
        self.snapshots = snapshots
        self._delay = delay
        self._watchers: dict[str, asyncio.Task[None]] = {}
        self._watches: dict[str, WorkspaceWatch] = {}
        self._saving: dict[str, asyncio.Task[None]] = {}
        self._first_changes: dict[str, float] = {}
        self._last_changes: dict[str, float] = {}
        self._slots = asyncio.Semaphore(_CONCURRENCY)
        self._task = PeriodicTask("automatic snapshots", self._check, min(delay / 6, 10.0))

    def start(self) -> None:
        self._task.start(delay=min(self._delay, 5.0))

    async def save_changes(self, seconds: float) -> None:
        """Take snapshots of all workspaces with changes, as far as that is done within `seconds`."""
        changed = list(self._last_changes)
        saving = asyncio.gather(*(self._save(agent_id, SnapshotTrigger.STOP) for agent_id in changed))
        done, _ = await asyncio.wait({saving}, timeout=seconds)
        if not done:
            saving.cancel()
            _log.warning("snapshots.not_all_saved", agents=len(self._last_changes))

    async def stop(self) -> None:
        await self._task.stop()
        tasks = [*self._watchers.values(), *self._saving.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def commit_changes(self, agent_id: str) -> None:
        """Make the branch main equal to a workspace, unless its watch proves that it is. Raises as `sync`."""
        self._start_watch(agent_id)
        watch = self._watches.get(agent_id)
        changes = None if watch is None else await watch.count_changes()
        is_unchanged = watch is not None and changes is not None and changes == watch.committed
        await self.snapshots.commit_changes(agent_id, is_unchanged=is_unchanged)
        if watch is not None:
            watch.committed = changes

    async def _check(self) -> None:
        """Watch new agents, and save the workspaces that have rested long enough."""
        running = {agent.id for agent in await self._host_agents.list() if agent.state is AgentState.RUNNING}
        for agent_id in running:
            self._start_watch(agent_id)
        for agent_id in self._last_changes.keys() - running:
            self._forget_change(agent_id)
        for agent_id in self._find_due():
            if agent_id not in self._saving:
                self._saving[agent_id] = asyncio.create_task(self._save(agent_id, SnapshotTrigger.CHANGE))

    def _find_due(self) -> Iterable[str]:
        now = clock.monotonic_seconds()
        for agent_id, last in list(self._last_changes.items()):
            if now - last >= self._delay or now - self._first_changes[agent_id] >= self._delay * _LONGEST_DELAYS:
                yield agent_id

    def _start_watch(self, agent_id: str) -> None:
        if agent_id not in self._watchers:
            self._watchers[agent_id] = asyncio.create_task(self._watch(agent_id), name=f"watch {agent_id}")

    async def _watch(self, agent_id: str) -> None:
        """Note the changes of a workspace until its container is gone."""
        watch = self._watches[agent_id] = WorkspaceWatch(partial(self._note_change, agent_id))
        try:
            await watch.run(self._runtimes.get_warden(agent_id).tree)
        except WardenWatchRefused as problem:
            _log.warning("snapshots.cannot_watch", agent=agent_id, reason=problem.message)
            self._note_change(agent_id)
            await asyncio.sleep(self._delay * _BLIND_DELAYS)
        except Problem:  # the container is gone; the next check finds out whether it is back
            return
        finally:
            self._watches.pop(agent_id, None)
            self._watchers.pop(agent_id, None)

    def _note_change(self, agent_id: str) -> None:
        now = clock.monotonic_seconds()
        self._first_changes.setdefault(agent_id, now)
        self._last_changes[agent_id] = now

    def _forget_change(self, agent_id: str) -> None:
        self._first_changes.pop(agent_id, None)
        self._last_changes.pop(agent_id, None)

    async def _save(self, agent_id: str, trigger: SnapshotTrigger) -> None:
        async with self._slots:
            self._forget_change(agent_id)  # before: what changes during the snapshot is in the next one
            try:
                await self.snapshots.sync(agent_id, trigger)
            except Problem as problem:
                _log.warning("snapshots.sync_failed", agent=agent_id, reason=problem.detail or problem.message)
                self._note_change(agent_id)
            finally:
                self._saving.pop(agent_id, None)
