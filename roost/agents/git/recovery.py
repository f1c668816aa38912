"""Keeps pushes apart from snapshots and resets, and finishes those that a crash interrupted.

A push that is recorded in the repository may have been applied in part.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from roost.agents.git.push import AgentPush
from roost.agents.git.workspace import apply_commit
from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.core import log
from roost.core.problem import Problem
from roost.drivers.git.contract import GitFailed, GitRepositories, GitUnavailable, UnknownCommit

_log = log.get_logger("git")


class PushRecovery:
    """`locks` of agents are held while a workspace is read or changed; `live_pushes` are those of connected clients."""

    def __init__(self, runtimes: AgentRuntimes, repositories: GitRepositories) -> None:
        self.live_pushes = set[AgentPush]()
        self._runtimes = runtimes
        self._repositories = repositories
        self.locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    @asynccontextmanager
    async def exclude_pushes(self, agent_id: str) -> AsyncGenerator[None]:
        """Finish an interrupted push, and let no push change the workspace within the block.

        Raises as `WardenTree.apply`; what fails in Git is logged.
        """
        async with self.locks[agent_id]:
            try:
                await self._finish(agent_id)
            except (GitFailed, GitUnavailable, UnknownCommit) as problem:
                self._log_failure(agent_id, problem)
            yield

    async def try_finish(self, agent_id: str) -> None:
        """Finish an interrupted push; log a failure, after which the next access tries again."""
        try:
            async with self.exclude_pushes(agent_id):
                pass
        except Problem as problem:
            self._log_failure(agent_id, problem)

    async def find_interrupted(self, agent_id: str) -> tuple[str | None, str] | None:
        """Return the commits of an unfinished push that is not under way."""
        if any(push.agent_id == agent_id and push.is_accepted for push in self.live_pushes):
            return None
        return await self._repositories.find_unfinished_push(agent_id)

    async def _finish(self, agent_id: str) -> None:
        if (push := await self.find_interrupted(agent_id)) is None:
            return
        await apply_commit(self._repositories, self._runtimes.get_warden(agent_id).tree, agent_id, *push)
        await self._repositories.finish_push(agent_id)
        _log.info("push.finished_later", agent=agent_id)

    @staticmethod
    def _log_failure(agent_id: str, problem: Problem) -> None:
        _log.warning("push.recovery_failed", agent=agent_id, reason=problem.message)
