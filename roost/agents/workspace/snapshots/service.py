"""Snapshots: taken and restored by operations of the agent, so that they never overlap with each other or a start.

A snapshot's pack is an object of the blob store before one transaction makes it content and the snapshot a row. A reset
records that it has begun to write before it does, and is repeated until the workspace equals the snapshot.
Decision 0025 says why.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, Protocol

from sqlalchemy import Connection

from roost import work
from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.errors import AgentNotFound
from roost.agents.registry.model import Agent, AgentState
from roost.agents.registry.repository import enqueue_once
from roost.agents.workspace.snapshots import model, store
from roost.agents.workspace.snapshots.history import SnapshotHistory
from roost.agents.workspace.snapshots.index import CommittedFiles, WorkspaceIndex, encode_index
from roost.agents.workspace.snapshots.model import (
    ResetFailed,
    Snapshot,
    SnapshotNotFound,
    SnapshotTrigger,
    StateNotFound,
    SyncFailed,
    SyncStatus,
)
from roost.agents.workspace.snapshots.restore import open_to_write, restore_tree
from roost.agents.workspace.snapshots.state_tree import StateTree
from roost.agents.workspace.snapshots.stored_trees import SnapshotComparison, StoredTrees
from roost.agents.workspace.snapshots.taking import SnapshotTaker, hold_needed, insert_snapshot, load_index, read_status
from roost.core import clock, ids, log
from roost.core.db import Database, DataChange, record_change
from roost.core.problem import Problem, ProblemKind, ServiceUnavailable
from roost.storage.content.model import ContentScope
from roost.storage.content.service import ContentService
from roost.storage.content.unixfs.cid import Cid
from roost.warden_client.client import WardenClient
from roost.warden_client.errors import PathRefused, WardenDiskFull, WardenFileTooLarge, WardenTooManyEntries
from roost.warden_client.tree import WardenTree
from roost.warden_client.tree_rules import TreeRefused
from roost.work import ClaimedOperation, Operation, OperationState, OperationWorker
from roost.work.faults import find_fault

AfterReset = Callable[[Connection, Agent], object]
"""Called in the transaction that ends the reset of a workspace, to enqueue further changes of it."""
_RESET_RETRIES = 8
"""Retries over four minutes of a reset whose writing failed; then the workspace may be a mixture, which the next
snapshot shows, and other operations of the agent go on."""
_UNCHANGED = (PathRefused, WardenDiskFull, WardenFileTooLarge, WardenTooManyEntries)
"""Errors after which the workspace is as it was before `WardenTree.apply`, and which another attempt would meet too."""
_COMMIT_SECONDS = 0.2
"""A response waits so long for the commit of its snapshot."""
_AWAITED_FILES = 50
"""The commit of so many changed files takes longer."""
_SETTLE_SECONDS = 0.02
"""A file that has rested so long has a stamp."""
_log = log.get_logger("snapshots")


class GatewayControl(Protocol):
    """Opens workspaces, and stops and starts gateways, for a state that is replaced."""

    def open_workspace(self, agent: Agent) -> AbstractAsyncContextManager[WardenClient]:
        """Open the container of an agent, without its gateway if the agent does not run."""
        ...

    async def stop_gateway(self, agent: Agent) -> None: ...
    def mark_failed(self, connection: Connection, operation: Operation, reason: str) -> None: ...
    def enqueue_start(self, connection: Connection, agent: Agent) -> str:
        """Return the id of the operation."""
        ...

    def get_start_seconds(self, agent: Agent) -> float:
        """Return how long a start may take."""
        ...


@dataclass
class SnapshotService:
    _queue: OperationWorker
    _content: ContentService
    _history: SnapshotHistory
    _taker: SnapshotTaker
    _runtimes: AgentRuntimes
    _gateways: GatewayControl
    _after_reset: AfterReset

    def __post_init__(self) -> None:
        self._queue.handle(model.SYNC, self.handle_sync, on_failure=_record_failure)
        for kind in (model.RESET, model.RESTORE):
            self._queue.handle(kind, self.handle_reset, retries=_RESET_RETRIES, on_failure=self._mark_failed)

    async def list_page(self, agent_id: str, page: int = 1) -> tuple[Sequence[Snapshot], bool]:
        """List a page of snapshots, newest first, and whether there are more. Raises AgentNotFound."""
        await self._runtimes.agents.get(agent_id)
        offset = (page - 1) * model.PAGE_SIZE
        found = await self._queue.db.read(
            lambda connection: store.list_snapshots(connection, agent_id, model.PAGE_SIZE + 1, offset)
        )
        return found[: model.PAGE_SIZE], len(found) > model.PAGE_SIZE

    async def get_status(self, agent_id: str) -> SyncStatus:
        """Return when the workspace was last compared, and what failed since then. Raises AgentNotFound."""
        await self._runtimes.agents.get(agent_id)

        def read(connection: Connection) -> SyncStatus:
            fault = find_fault(connection, agent_id, model.SYNC)
            return replace(read_status(connection, agent_id), fault=fault)

        return await self._queue.db.read(read)

    async def sync(
        self, agent_id: str, trigger: SnapshotTrigger = SnapshotTrigger.REQUEST
    ) -> tuple[datetime, Snapshot]:
        """Take a snapshot unless nothing has changed; return the time and the snapshot that the workspace equals.

        Raises AgentNotFound, AgentOnOtherHost, ServiceUnavailable and SyncFailed.
        """
        agent = await self._runtimes.agents.get_here(agent_id)
        operation_id = await self._queue.db.write(
            partial(enqueue_once, kind=model.SYNC, agent=agent, payload=trigger.value)
        )
        operation = await self._queue.wait(operation_id, model.RESTORE_SECONDS)
        result: Mapping[str, int] = operation.result or {}
        if result.get("changes", 0) < _AWAITED_FILES:
            await self._history.wait(agent_id, _COMMIT_SECONDS)
        status = await self.get_status(agent_id)
        if operation.state is not OperationState.DONE:
            raise _failure(operation, SyncFailed)
        if status.synced_at is None or status.snapshot is None:
            raise SyncFailed
        return status.synced_at, status.snapshot

    async def commit_changes(self, agent_id: str, *, is_unchanged: bool = False) -> None:
        """Make the branch main of the agent's repository equal to its workspace. Raises as `sync`.

        is_unchanged: the workspace is as it was before the last call.
        """
        if not (is_unchanged and await self._taker.is_last_committed(agent_id)):
            await self.sync(agent_id, SnapshotTrigger.GIT)
            await self._history.wait(agent_id, model.RESTORE_SECONDS)

    async def try_sync(self, agent_id: str, trigger: SnapshotTrigger) -> None:
        """Take a snapshot before a change of the agent, which a failure does not prevent."""
        try:
            await self.sync(agent_id, trigger)
        except Problem as problem:
            _log.warning("snapshot.failed", agent=agent_id, reason=problem.detail or problem.message)

    async def reset(
        self, agent_id: str, cid: object, *, with_state: bool = False, snapshot_id: str | None = None
    ) -> Snapshot:
        """Make the workspace equal to a snapshot of the agent; with its state, its gateway starts again.

        `snapshot_id` selects one of several snapshots with that CID, otherwise it is the newest.
        Raises InvalidSnapshotCid, SnapshotNotFound, StateNotFound, AgentNotFound, AgentOnOtherHost, ServiceUnavailable
        and ResetFailed.
        """
        agent = await self._runtimes.agents.get_here(agent_id)
        snapshot = await find_snapshot(self._queue.db, agent_id, cid, snapshot_id)
        if with_state and snapshot.state_cid is None:
            raise StateNotFound
        payload = {"snapshot": snapshot.id, "is_writing": False, "state": with_state}
        operation_id = await self._queue.db.write(partial(enqueue_once, kind=model.RESET, agent=agent, payload=payload))
        operation = await self._queue.wait(operation_id, model.RESTORE_SECONDS)
        await self._runtimes.agents.get(agent_id)
        if operation.state is not OperationState.DONE:
            raise _failure(operation, ResetFailed)
        if reason := operation.result.get("unavailable"):
            raise ServiceUnavailable(reason)
        if "then" in operation.result:
            start_id, seconds = operation.result["then"], self._gateways.get_start_seconds(agent)
            started = await self._queue.wait(start_id, seconds, queue_timeout=model.RESTORE_SECONDS)
            if started.state is not OperationState.DONE:
                raise _failure(started, ResetFailed)
        return snapshot

    async def find_for_tenant(self, tenant_id: str, cid: object) -> Snapshot:
        """Return a snapshot of any of the tenant's agents. Raises InvalidSnapshotCid, SnapshotNotFound."""
        name = model.parse_snapshot_cid(cid)
        found = await self._queue.db.read(lambda connection: store.find_tenant_snapshot(connection, tenant_id, name))
        if found is None:
            raise SnapshotNotFound
        return replace(found, trigger=SnapshotTrigger.FORK)

    @staticmethod
    def enqueue_restore(connection: Connection, agent: Agent, snapshot: Snapshot, then: str) -> str:
        """Enqueue that a new agent gets workspace and state of a snapshot with its trigger, and then `then`.

        Returns the id of the first operation, whose result has the id of the other one.
        """
        own = replace(
            snapshot,
            id=ids.new_id(),
            agent_id=agent.id,
            commit_sha=None,
            label=None,
            created_at=clock.utc_now(),
        )
        insert_snapshot(connection, agent, own)
        hold_needed(connection, agent)
        payload = {"snapshot": own.id, "is_writing": True, "then": then, "state": own.state_cid is not None}
        return enqueue_once(connection, model.RESTORE, agent, payload)

    async def set_label(self, agent_id: str, cid: object, label: str | None) -> Snapshot:
        """Label a snapshot, which is then kept. Raises InvalidSnapshotCid, SnapshotNotFound, AgentNotFound."""
        await self._runtimes.agents.get(agent_id)
        snapshot = await find_snapshot(self._queue.db, agent_id, cid)
        await self._queue.db.write(lambda connection: store.set_label(connection, snapshot.id, label))
        return await find_snapshot(self._queue.db, agent_id, cid)

    async def compare(self, agent_id: str, old: object, new: object, path: str | None = None) -> SnapshotComparison:
        """Compare two snapshots of an agent.

        Raises InvalidSnapshotCid, SnapshotNotFound, AgentNotFound, and ServiceUnavailable.
        """
        agent = await self._runtimes.agents.get(agent_id)
        before, after = (
            await find_snapshot(self._queue.db, agent_id, old),
            await find_snapshot(self._queue.db, agent_id, new),
        )
        trees = StoredTrees(self._content.reader, model.content_scope(agent.tenant_id))
        return await trees.compare(Cid.parse(before.cid), Cid.parse(after.cid), path)

    async def handle_sync(self, operation: ClaimedOperation) -> Mapping[str, int]:
        """Handle `agent.snapshot`, idempotently; the result is how many files changed."""
        try:
            agent = await self._runtimes.agents.get_here(operation.subject)
        except AgentNotFound:  # deleted while the operation waited
            return {"changes": 0}
        async with self._gateways.open_workspace(agent) as warden:
            return {"changes": await self._taker.take(operation, agent, warden, SnapshotTrigger(operation.payload))}

    async def handle_reset(self, operation: ClaimedOperation) -> Mapping[str, str]:
        """Handle `agent.reset` and `agent.restore`, idempotently.

        It takes a snapshot, records that writing begins, and writes, which later attempts repeat. The result says if a
        service was unavailable before that; only writing is tried again by itself.
        """
        payload: dict[str, Any] = operation.payload
        try:
            agent = await self._runtimes.agents.get_here(operation.subject)
        except AgentNotFound:
            return {}
        target = await self._queue.db.read(lambda connection: store.get_snapshot(connection, payload["snapshot"]))
        if target is None:
            raise SnapshotNotFound
        async with open_to_write(self._gateways.open_workspace(agent), has_begun=payload["is_writing"]) as warden:
            if not payload["is_writing"]:
                try:
                    await self._taker.take(operation, agent, warden, SnapshotTrigger.RESET, kept=target.id)
                except ServiceUnavailable as problem:
                    return {"unavailable": problem.message}
                await operation.guard(partial(self._begin, operation))
            is_repeated = payload["is_writing"] and "then" not in payload
            data, state_data = await self._write_trees(operation, agent, warden, target, is_repeated=is_repeated)

        def finish(connection: Connection) -> Mapping[str, str]:
            store.save_index(connection, agent.id, target.id, clock.utc_now(), data, state_data)
            self._history.enqueue(connection, agent, target.id)
            self._after_reset(connection, agent)
            if "then" in payload:
                return {"then": work.add_operation(connection, payload["then"], agent.id, host=agent.host_id).id}
            return {"then": self._gateways.enqueue_start(connection, agent)} if payload.get("state") else {}

        _log.info("snapshot.restored", agent=agent.id, cid=target.cid)
        return await operation.guard(finish)

    def _mark_failed(self, connection: Connection, operation: Operation, reason: str) -> None:
        self._gateways.mark_failed(connection, operation, f"The workspace could not be restored: {reason}")

    def _begin(self, operation: ClaimedOperation, connection: Connection) -> None:
        work.update_payload(connection, operation, {**operation.payload, "is_writing": True}, "write")
        if operation.payload.get("state"):
            self._runtimes.agents.set_state(connection, operation.subject, AgentState.STARTING)

    async def _write_trees(
        self, operation: ClaimedOperation, agent: Agent, warden: WardenClient, target: Snapshot, *, is_repeated: bool
    ) -> tuple[bytes, bytes | None]:
        """Write the workspace and, if the operation says so, the state; return their indexes.

        Raises TreeRefused, and ServiceUnavailable, for another attempt, if a tree may be neither as it was nor as it is
        to be.
        """
        index, state_data = await load_index(self._queue.db, agent.id), None
        try:
            data = await self._write_tree(warden.tree, model.content_scope(agent.tenant_id), target.cid, index)
            if operation.payload.get("state") and target.state_cid is not None:
                is_repeated = True
                await self._gateways.stop_gateway(agent)
                index = await load_index(self._queue.db, agent.id, of_state=True)
                tree = StateTree(warden, self._runtimes.get_engine(agent.engine), index)
                state_data = await self._write_tree(tree, model.state_scope(agent.tenant_id), target.state_cid, index)
        except TreeRefused:
            raise
        except Problem as problem:
            if isinstance(problem, _UNCHANGED) and not is_repeated:
                raise
            raise ServiceUnavailable(problem.message) from problem
        return data, state_data

    async def _write_tree(
        self, tree: WardenTree | StateTree, scope: ContentScope, cid: str, index: WorkspaceIndex
    ) -> bytes:
        """Make a tree equal to a stored one, and return its encoded index."""
        kept = await restore_tree(tree, self._content.reader, scope, Cid.parse(cid), index)
        return await asyncio.to_thread(encode_index, kept)


async def find_snapshot(db: Database, agent_id: str, cid: object, snapshot_id: str | None = None) -> Snapshot:
    """Return the newest snapshot of an agent with that CID, or the one that also has that id.

    Raises InvalidSnapshotCid, SnapshotNotFound.
    """
    name = model.parse_snapshot_cid(cid)
    found = await db.read(lambda connection: store.find_snapshot(connection, agent_id, name, snapshot_id))
    if found is None:
        raise SnapshotNotFound
    return found


async def read_committed_files(db: Database, snapshots: SnapshotService, agent_id: str) -> CommittedFiles:
    """Return what the last snapshot has, whose commit is made.

    Call it after `commit_changes`. Raises as `sync`.
    """
    read_index = partial(_read_committed_index, agent_id=agent_id)
    data = await db.read(read_index)
    committed = await asyncio.to_thread(CommittedFiles.decode, data)
    if data is None or not committed.is_settled:
        await asyncio.sleep(_SETTLE_SECONDS)
        await snapshots.commit_changes(agent_id)
        committed = await asyncio.to_thread(CommittedFiles.decode, await db.read(read_index))
    return committed


def _read_committed_index(connection: Connection, agent_id: str) -> bytes | None:
    """Return the index of the last snapshot, unless that has no commit yet."""
    snapshot = read_status(connection, agent_id).snapshot
    is_committed = snapshot is not None and (snapshot.commit_sha is not None or not snapshot.files)
    return store.get_index(connection, agent_id) if is_committed else None


def _record_failure(connection: Connection, operation: Operation, reason: str) -> None:
    """Record for the agent's followers since when its workspace is not saved."""
    if (fault := find_fault(connection, operation.subject, model.SYNC)) is not None:
        data = {"reason": reason, "failing_since": fault.failing_since.isoformat(), "failures": fault.failures}
        record_change(connection, DataChange("snapshot", "failed", operation.id, agent_id=operation.subject, data=data))


def _failure(operation: Operation, failed: type[Problem]) -> Problem:
    error: Mapping[str, str] = operation.error or {}
    if error.get("kind") == ProblemKind.UNAVAILABLE:
        return ServiceUnavailable(error["message"])
    return failed(detail=error.get("message"))
