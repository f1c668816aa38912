"""Commits of snapshots in the agent's Git repository, made in their order by operations of their own.

The branch main is at the commit of the last snapshot, or at what was pushed since. A commit has less than a snapshot:
Git knows neither empty folders nor permissions other than the executable bit, and refuses `.git` in a path.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from sqlalchemy import Connection

from roost import work
from roost.agents.registry.errors import AgentNotFound
from roost.agents.registry.model import Agent
from roost.agents.registry.repository import AgentRepository
from roost.agents.workspace.snapshots import model, store
from roost.agents.workspace.snapshots.model import Snapshot
from roost.agents.workspace.snapshots.stored_trees import StoredTrees
from roost.core import log
from roost.core.db import Database
from roost.core.problem import Problem
from roost.drivers.git.contract import (
    GitChange,
    GitDeletion,
    GitFile,
    GitLink,
    GitOutcomeUnknown,
    GitRepositories,
    GitUnavailable,
    UnknownCommit,
)
from roost.storage.content.reader import ContentReader
from roost.storage.content.tree_walk import MemberKind, TreeMember
from roost.storage.content.unixfs.cid import Cid
from roost.work import ClaimedOperation, OperationWorker

_log = log.get_logger("snapshots")


@dataclass(frozen=True)
class SnapshotHistory:
    _db: Database
    _queue: OperationWorker
    _agents: AgentRepository
    _reader: ContentReader
    _repositories: GitRepositories

    def __post_init__(self) -> None:
        self._queue.handle(model.COMMIT, self.handle, retries=3)

    @staticmethod
    def enqueue(connection: Connection, agent: Agent, snapshot_id: str) -> None:
        """Enqueue that main becomes the commit of a snapshot, after those that were enqueued before."""
        work.add_operation(connection, model.COMMIT, _subject(agent.id), snapshot_id, host=agent.host_id)

    async def wait(self, agent_id: str, seconds: float) -> None:
        """Wait until all waiting commits of an agent are made."""
        last = await self._db.read(
            lambda connection: work.find_last_unfinished(connection, model.COMMIT, _subject(agent_id))
        )
        if last is not None:
            await self._queue.wait(last.id, seconds)

    async def has_commit(self, snapshot: Snapshot) -> bool:
        """Return whether a snapshot was committed, and not in a repository that only another server had."""
        try:
            return snapshot.commit_sha is not None and await self._repositories.head(snapshot.agent_id) is not None
        except Problem:  # Git is not available, so no further commit would be made
            return True

    async def list_commits(self, agent_id: str) -> Sequence[str]:
        """List the commits of an agent's snapshots."""
        snapshots = await self._db.read(lambda connection: store.list_snapshots(connection, agent_id))
        return [snapshot.commit_sha for snapshot in snapshots if snapshot.commit_sha is not None]

    async def handle(self, operation: ClaimedOperation) -> None:
        """Handle `agent.commit`, idempotently. A machine without Git has no commits.

        Raises GitFailed and PushUnfinished; the next snapshot enqueues the commit again.
        """
        agent_id = operation.subject.removesuffix(_SUBJECT)
        snapshot = await self._db.read(lambda connection: store.get_snapshot(connection, operation.payload))
        try:
            agent = await self._agents.get_here(agent_id)
        except AgentNotFound:
            return
        if snapshot is None:
            return
        try:
            commit = await self._make_current(agent, snapshot)
        except GitOutcomeUnknown:
            raise  # to be tried again
        except GitUnavailable as problem:
            _log.warning("snapshot.not_committed", agent=agent_id, reason=problem.message)
            return
        if commit is not None:
            await operation.guard(lambda connection: store.set_commit(connection, snapshot.id, commit))

    async def _make_current(self, agent: Agent, snapshot: Snapshot) -> str | None:
        """Move main to the commit of a snapshot and return the commit; None for an empty first one."""
        head = await self._repositories.head(agent.id)
        if head is None and not snapshot.files:
            return None
        if snapshot.commit_sha is not None:
            try:
                await self._repositories.set_head(agent.id, snapshot.commit_sha)
            except UnknownCommit:  # the repository was lost, or replaced
                pass
            else:
                return snapshot.commit_sha
        base = await self._db.read(lambda connection: store.find_base(connection, agent.id, head))
        try:
            return await self._commit(agent, head, base, snapshot)
        except UnknownCommit:
            return await self._commit(agent, head, None, snapshot)

    async def _commit(self, agent: Agent, head: str | None, base: Snapshot | None, snapshot: Snapshot) -> str:
        """Commit a snapshot by what differs from the snapshot `base`."""
        author = f"{agent.profile.name} <{agent.id}>"
        message = f"{snapshot.change_summary}\n\nSnapshot {snapshot.cid}\n"
        base_commit = None if base is None else base.commit_sha
        async with aclosing(self._list_changes(agent, base, snapshot)) as changes:
            return await self._repositories.commit(
                agent.id, head, base_commit, changes, message, author, snapshot.created_at
            )

    async def _list_changes(self, agent: Agent, base: Snapshot | None, snapshot: Snapshot) -> AsyncGenerator[GitChange]:
        """Yield what differs from the snapshot `base`, or the whole tree."""
        trees = StoredTrees(self._reader, model.content_scope(agent.tenant_id))
        old = None if base is None else Cid.parse(base.cid)
        written: list[TreeMember] = []
        async with aclosing(trees.list_differences(old, Cid.parse(snapshot.cid), enters_removed=False)) as differences:
            async for difference in differences:
                if difference.new is None:
                    yield GitDeletion(difference.path)
                elif difference.new.kind is not MemberKind.FOLDER:
                    written.append(difference.new)
        async with aclosing(trees.read_members(written)) as contents:
            async for member, _, content in contents:
                if member.kind is MemberKind.LINK:
                    yield GitLink(member.path, member.target.decode("utf-8", "surrogateescape"))
                else:
                    yield GitFile(member.path, member.size, content, bool((member.mode or 0) & 0o100))


_SUBJECT = "/git"


def _subject(agent_id: str) -> str:
    return f"{agent_id}{_SUBJECT}"
