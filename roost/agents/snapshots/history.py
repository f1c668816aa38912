"""Commits of snapshots in the agent's Git repository, made in their order by operations of their own.

The branch main is at the commit of the last snapshot, or at what was pushed since. A commit has less than a snapshot:
Git knows neither empty folders nor permissions other than the executable bit, and refuses `.git` in a path.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from sqlalchemy import Connection

from roost import work
from roost.agents.registry.errors import AgentNotFound
from roost.agents.registry.model import Agent
from roost.agents.registry.repository import AgentRepository
from roost.agents.snapshots import model, store
from roost.agents.snapshots.model import Snapshot
from roost.agents.snapshots.tree_differences import list_differences
from roost.core import log
from roost.core.db import Database
from roost.drivers.git.contract import (
    GitChange,
    GitClear,
    GitDeletion,
    GitFailed,
    GitFile,
    GitLink,
    GitRepositories,
    GitUnavailable,
    PushUnfinished,
    UnknownCommit,
)
from roost.storage.content.reader import ContentReader
from roost.storage.content.tree_walk import MemberKind, TreeMember
from roost.storage.unixfs.cid import Cid
from roost.work import ClaimedOperation, OperationWorker

_log = log.get_logger("snapshots")


class SnapshotHistory:
    def __init__(
        self,
        db: Database,
        queue: OperationWorker,
        agents: AgentRepository,
        reader: ContentReader,
        repositories: GitRepositories,
    ) -> None:
        self._db = db
        self._queue = queue
        self._agents = agents
        self._reader = reader
        self._repositories = repositories
        queue.handle(model.COMMIT, self.handle, retries=3)

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

    async def handle(self, operation: ClaimedOperation) -> None:
        """Handle `agent.commit`, idempotently. A machine without Git has no commits."""
        agent_id = operation.subject.removeprefix(_SUBJECT)
        snapshot = await self._db.read(lambda connection: store.get_snapshot(connection, operation.payload))
        try:
            agent = await self._agents.get_here(agent_id)
        except AgentNotFound:
            return
        if snapshot is None:
            return
        try:
            commit = await self._make_current(agent, snapshot)
        except (GitUnavailable, GitFailed, PushUnfinished) as problem:
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
        base = None
        if head is not None:
            base = await self._db.read(lambda connection: store.find_commit(connection, agent.id, head))
        changes = self._list_changes(agent, base, snapshot)
        author = f"{agent.profile.name} <{agent.id}>"
        message = f"{snapshot.change_summary}\n\nSnapshot {snapshot.cid}\n"
        async with aclosing(changes):
            return await self._repositories.commit(agent.id, head, changes, message, author, snapshot.created_at)

    async def _list_changes(self, agent: Agent, base: Snapshot | None, snapshot: Snapshot) -> AsyncGenerator[GitChange]:
        """Yield what differs from the snapshot `base`, or the whole tree."""
        scope = model.content_scope(agent.tenant_id)
        if base is None:
            yield GitClear()
        old = None if base is None else Cid.parse(base.cid)
        async with aclosing(list_differences(self._reader, scope, old, Cid.parse(snapshot.cid))) as differences:
            async for difference in differences:
                if difference.new is None:
                    yield GitDeletion(difference.path)
                elif difference.new.kind is MemberKind.LINK:
                    yield GitLink(difference.path, difference.new.target.decode("utf-8", "surrogateescape"))
                elif difference.new.kind is MemberKind.FILE:
                    found = await self._reader.stat(scope, difference.new.cid)
                    async with aclosing(self._reader.stream_file(scope, found)) as content:
                        yield GitFile(difference.path, difference.new.size, content, _is_executable(difference.new))


_SUBJECT = "git/"


def _subject(agent_id: str) -> str:
    return f"{_SUBJECT}{agent_id}"


def _is_executable(member: TreeMember) -> bool:
    return bool((member.mode or 0) & 0o100)
