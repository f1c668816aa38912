"""Keeps pushes apart from snapshots and resets, and finishes those that a crash interrupted.

A push that is recorded in the repository may have been applied in part. One that can never be finished is undone: the
branch main stays as it was, the next snapshot commits what the workspace has, and the client has its commits still.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from sqlalchemy import Connection

from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.workspace.git.push import AgentPush, apply_commit
from roost.core import clock, log
from roost.core.db import Database, DataChange, record_change
from roost.core.problem import Problem
from roost.drivers.git.contract import GitFailed, GitRepositories, GitUnavailable
from roost.work.faults import clear_fault, record_fault

PUSH = "git.push"
"""Kind of the fault that tells of a push that was undone."""
_ATTEMPTS = 2
_PATIENCE_SECONDS = 600.0
"""Time after which errors that should be temporary are not taken for that any more."""
_log = log.get_logger("git")


class PushRecovery:
    """`locks` of agents are held while a workspace is read or changed; `live_pushes` are those of connected clients."""

    def __init__(self, db: Database, runtimes: AgentRuntimes, repositories: GitRepositories) -> None:
        self.live_pushes = set[AgentPush]()
        self._db = db
        self._runtimes = runtimes
        self.repositories = repositories
        self._failing_since: dict[str, float] = {}
        self.locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    @asynccontextmanager
    async def exclude_pushes(self, agent_id: str) -> AsyncGenerator[None]:
        """Finish an interrupted push or undo it, and let no push change the workspace within the block.

        Raises temporary errors of `WardenTree.apply`; those of Git are logged.
        """
        async with self.locks[agent_id]:
            try:
                await self._finish(agent_id)
            except (GitFailed, GitUnavailable) as problem:
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
        return await self.repositories.find_unfinished_push(agent_id)

    async def clear_failure(self, agent_id: str) -> None:
        """Forget that a push was undone, because another one has succeeded."""
        await self._db.write(lambda connection: clear_fault(connection, agent_id, PUSH))

    async def _finish(self, agent_id: str) -> None:
        """Finish an interrupted push; undo it when that fails with an error that another attempt would meet too."""
        if (push := await self.find_interrupted(agent_id)) is None:
            self._failing_since.pop(agent_id, None)
            return
        problem = Problem()
        for _ in range(_ATTEMPTS):  # the agent may change the same paths at the same time
            try:
                await apply_commit(self.repositories, self._runtimes.get_warden(agent_id).tree, agent_id, *push)
                await self.repositories.finish_push(agent_id)
            except Problem as error:
                if error.kind.is_temporary and not self._is_overdue(agent_id):
                    raise
                problem = error
            else:
                _log.info("push.finished_later", agent=agent_id)
                return
        await self._undo(agent_id, push[1], problem)

    def _is_overdue(self, agent_id: str) -> bool:
        """Return whether a push has failed with temporary errors for too long."""
        now = clock.monotonic_seconds()
        return now - self._failing_since.setdefault(agent_id, now) >= _PATIENCE_SECONDS

    async def _undo(self, agent_id: str, commit: str, problem: Problem) -> None:
        """Forget a push, so that the agent can be used again, and record why. Its files may be there in part."""
        await self.repositories.finish_push(agent_id, undo=True)
        reason = f"The push of {commit[:12]} could not be applied and was undone: {problem.message}"
        _log.error("push.undone", agent=agent_id, commit=commit, reason=problem.message)

        def record(connection: Connection) -> None:
            record_fault(connection, agent_id, PUSH, reason)
            record_change(connection, DataChange("push", "failed", commit, agent_id=agent_id, data={"reason": reason}))

        await self._db.write(record)

    @staticmethod
    def _log_failure(agent_id: str, problem: Problem) -> None:
        _log.warning("push.recovery_failed", agent=agent_id, reason=problem.message)
