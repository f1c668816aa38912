"""Snapshots: taken and restored by operations of the agent, so that they never overlap with each other or a start.

A snapshot's pack is an object of the blob store before one transaction makes it content and the snapshot a row. A reset
records that it has begun to write before it does, and is repeated until the workspace equals the snapshot.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import Connection

from roost import work
from roost.agents.registry.errors import AgentNotFound
from roost.agents.registry.model import Agent
from roost.agents.registry.repository import AgentRepository
from roost.agents.snapshots import model, store
from roost.agents.snapshots.capture import CapturedWorkspace, WorkspaceCapture
from roost.agents.snapshots.comparison import SnapshotComparison, compare_trees
from roost.agents.snapshots.errors import ResetFailed, SnapshotNotFound, SyncFailed
from roost.agents.snapshots.history import SnapshotHistory
from roost.agents.snapshots.index import WorkspaceIndex, decode_index, encode_index
from roost.agents.snapshots.model import Snapshot, SnapshotTrigger, SyncStatus
from roost.agents.snapshots.restore import restore_tree
from roost.agents.snapshots.secret_search import SecretSearch
from roost.core import clock, ids, log
from roost.core.db import Database
from roost.core.problem import Problem, ProblemKind, ServiceUnavailable
from roost.core.sensitive import Sensitive
from roost.drivers.runtime.warden_client import WardenClient
from roost.drivers.runtime.warden_errors import (
    PathRefused,
    WardenBusy,
    WardenDiskFull,
    WardenFileTooLarge,
    WardenTooManyEntries,
)
from roost.identity import tenants
from roost.storage.content.model import ContentNetwork, InternalNetwork
from roost.storage.content.service import ContentService, hold_packs, release_packs
from roost.storage.unixfs.cid import Cid
from roost.storage.unixfs.profile import UNIXFS_V1_2025
from roost.work import ClaimedOperation, Operation, OperationState, OperationWorker

OpenWorkspace = Callable[[Agent], AbstractAsyncContextManager[WardenClient]]
"""Opens the container of an agent, without its gateway if the agent does not run."""
LoadSecrets = Callable[[str], Awaitable[Mapping[str, Sensitive[str]]]]
"""Returns the values by name that a snapshot of the agent must not hold."""
_RESET_RETRIES = 1000
_UNCHANGED = (PathRefused, WardenBusy, WardenDiskFull, WardenFileTooLarge, WardenTooManyEntries)
"""Errors after which the workspace is as it was before `WardenTree.apply`."""
_COMMIT_SECONDS = 5.0
"""A response waits so long for the commit of its snapshot."""
_log = log.get_logger("snapshots")


class SnapshotService:
    def __init__(
        self,
        db: Database,
        queue: OperationWorker,
        agents: AgentRepository,
        content: ContentService,
        open_workspace: OpenWorkspace,
        load_secrets: LoadSecrets,
        digest_value: Callable[[Sensitive[str]], str],
        history: SnapshotHistory,
    ) -> None:
        self._db = db
        self._queue = queue
        self._agents = agents
        self._content = content
        self._open_workspace = open_workspace
        self._load_secrets = load_secrets
        self._digest_value = digest_value
        self._history = history
        queue.handle(model.SYNC, self.handle_sync)
        queue.handle(model.RESET, self.handle_reset, retries=_RESET_RETRIES)
        queue.handle(model.RESTORE, self.handle_reset, retries=_RESET_RETRIES)

    async def list_page(self, agent_id: str, page: int = 1) -> tuple[Sequence[Snapshot], bool]:
        """List a page of snapshots, newest first, and whether there are more. Raises AgentNotFound."""
        await self._agents.get(agent_id)
        offset = (page - 1) * model.PAGE_SIZE
        found = await self._db.read(
            lambda connection: store.list_snapshots(connection, agent_id, model.PAGE_SIZE + 1, offset)
        )
        return found[: model.PAGE_SIZE], len(found) > model.PAGE_SIZE

    async def get_status(self, agent_id: str) -> SyncStatus:
        """Return when the workspace was last compared. Raises AgentNotFound."""
        await self._agents.get(agent_id)
        return await self._db.read(lambda connection: _read_status(connection, agent_id))

    async def sync(
        self, agent_id: str, trigger: SnapshotTrigger = SnapshotTrigger.REQUEST
    ) -> tuple[datetime, Snapshot]:
        """Take a snapshot unless nothing has changed; return the time and the snapshot that the workspace equals.

        Raises AgentNotFound, AgentOnOtherHost, ServiceUnavailable and SyncFailed.
        """
        agent = await self._agents.get_here(agent_id)
        operation_id = await self._db.write(partial(_enqueue, kind=model.SYNC, agent=agent, payload=trigger.value))
        operation = await self._queue.wait(operation_id, model.RESTORE_SECONDS)
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
        if not (is_unchanged and await self._is_last_committed(agent_id)):
            await self.sync(agent_id, SnapshotTrigger.GIT)
            await self._history.wait(agent_id, model.RESTORE_SECONDS)

    async def try_sync(self, agent_id: str, trigger: SnapshotTrigger) -> None:
        """Take a snapshot before a change of the agent, which a failure does not prevent."""
        try:
            await self.sync(agent_id, trigger)
        except Problem as problem:
            _log.warning("snapshot.failed", agent=agent_id, reason=problem.detail or problem.message)

    async def reset(self, agent_id: str, cid: object) -> Snapshot:
        """Make the workspace equal to a snapshot of the agent.

        Raises InvalidSnapshotCid, SnapshotNotFound, AgentNotFound, AgentOnOtherHost, ServiceUnavailable and
        ResetFailed.
        """
        agent = await self._agents.get_here(agent_id)
        snapshot = await find_snapshot(self._db, agent_id, cid)
        payload = {"snapshot": snapshot.id, "is_writing": False}
        operation_id = await self._db.write(partial(_enqueue, kind=model.RESET, agent=agent, payload=payload))
        operation = await self._queue.wait(operation_id, model.RESTORE_SECONDS)
        await self._history.wait(agent_id, _COMMIT_SECONDS)
        await self._agents.get(agent_id)
        if operation.state is not OperationState.DONE:
            raise _failure(operation, ResetFailed)
        if reason := operation.result.get("unavailable"):
            raise ServiceUnavailable(reason)
        return snapshot

    async def find_for_tenant(self, tenant_id: str, cid: object) -> Snapshot:
        """Return a snapshot of any of the tenant's agents. Raises InvalidSnapshotCid, SnapshotNotFound."""
        name = model.parse_snapshot_cid(cid)
        found = await self._db.read(lambda connection: store.find_tenant_snapshot(connection, tenant_id, name))
        if found is None:
            raise SnapshotNotFound
        return replace(found, trigger=SnapshotTrigger.FORK)

    @staticmethod
    def enqueue_restore(connection: Connection, agent: Agent, snapshot: Snapshot, then: str) -> str:
        """Enqueue that a new agent gets the workspace of a snapshot with its trigger, and then the operation `then`.

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
        store.insert_snapshot(connection, own)
        _hold_needed(connection, agent)
        payload = {"snapshot": own.id, "is_writing": True, "then": then}
        return _enqueue(connection, kind=model.RESTORE, agent=agent, payload=payload)

    async def set_label(self, agent_id: str, cid: object, label: str | None) -> Snapshot:
        """Label a snapshot, which is then kept. Raises InvalidSnapshotCid, SnapshotNotFound, AgentNotFound."""
        await self._agents.get(agent_id)
        snapshot = await find_snapshot(self._db, agent_id, cid)
        await self._db.write(lambda connection: store.set_label(connection, snapshot.id, label))
        return await find_snapshot(self._db, agent_id, cid)

    async def compare(self, agent_id: str, old: object, new: object, path: str | None = None) -> SnapshotComparison:
        """Compare two snapshots of an agent.

        Raises InvalidSnapshotCid, SnapshotNotFound, AgentNotFound, and ServiceUnavailable.
        """
        agent = await self._agents.get(agent_id)
        before, after = await find_snapshot(self._db, agent_id, old), await find_snapshot(self._db, agent_id, new)
        scope = model.content_scope(agent.tenant_id)
        return await compare_trees(self._content.reader, scope, Cid.parse(before.cid), Cid.parse(after.cid), path)

    async def handle_sync(self, operation: ClaimedOperation) -> None:
        """Handle `agent.snapshot`, idempotently."""
        try:
            agent = await self._agents.get_here(operation.subject)
        except AgentNotFound:  # deleted while the operation waited
            return
        async with self._open_workspace(agent) as warden:
            await self._take(operation, agent, warden, SnapshotTrigger(operation.payload))

    async def handle_reset(self, operation: ClaimedOperation) -> Mapping[str, str]:
        """Handle `agent.reset` and `agent.restore`, idempotently.

        It takes a snapshot, records that writing begins, and writes, which later attempts repeat. The result says if a
        service was unavailable before that; only writing is tried again by itself.
        """
        payload: dict[str, Any] = operation.payload
        try:
            agent = await self._agents.get_here(operation.subject)
        except AgentNotFound:
            return {}
        target = await self._db.read(lambda connection: store.get_snapshot(connection, payload["snapshot"]))
        if target is None:
            raise SnapshotNotFound
        async with self._open_workspace(agent) as warden:
            if not payload["is_writing"]:
                try:
                    await self._take(operation, agent, warden, SnapshotTrigger.RESET, kept=target.id)
                except ServiceUnavailable as problem:
                    return {"unavailable": problem.message}
                begun = {**payload, "is_writing": True}
                await operation.guard(lambda connection: work.update_payload(connection, operation, begun))
            kept = await self._write_tree(
                agent, warden, target, is_repeated=payload["is_writing"] and "then" not in payload
            )
        data = await asyncio.to_thread(encode_index, kept)

        def finish(connection: Connection) -> Mapping[str, str]:
            store.save_index(connection, agent.id, target.id, clock.utc_now(), data)
            self._history.enqueue(connection, agent, target.id)
            if "then" not in payload:
                return {}
            return {"then": work.add_operation(connection, payload["then"], agent.id, host=agent.host_id).id}

        _log.info("snapshot.restored", agent=agent.id, cid=target.cid)
        return await operation.guard(finish)

    async def _write_tree(
        self, agent: Agent, warden: WardenClient, target: Snapshot, *, is_repeated: bool
    ) -> WorkspaceIndex:
        """Write a snapshot to the workspace, and return its index.

        Raises ServiceUnavailable, for another attempt, if the workspace may be neither as it was nor as it is to be.
        """
        index = decode_index(await self._db.read(lambda connection: store.get_index(connection, agent.id)))
        scope, root = model.content_scope(agent.tenant_id), Cid.parse(target.cid)
        try:
            return await restore_tree(warden.tree, self._content.reader, scope, root, index)
        except Problem as problem:
            if isinstance(problem, _UNCHANGED) and not is_repeated:
                raise
            raise ServiceUnavailable(problem.message) from problem

    async def _is_last_committed(self, agent_id: str) -> bool:
        """Return whether the last snapshot has a commit, and was searched for the agent's present secrets."""
        searched = self._digest_values(await self._load_secrets(agent_id))
        snapshot = (await self._db.read(lambda connection: _read_status(connection, agent_id))).snapshot
        return snapshot is not None and snapshot.commit_sha is not None and searched <= snapshot.searched

    def _digest_values(self, secrets: Mapping[str, Sensitive[str]]) -> frozenset[str]:
        return frozenset(map(self._digest_value, secrets.values()))

    async def _take(
        self,
        operation: ClaimedOperation,
        agent: Agent,
        warden: WardenClient,
        trigger: SnapshotTrigger,
        kept: str | None = None,
    ) -> None:
        """Take a snapshot of an open workspace, and record which files it has; `kept` is one that does not expire."""
        encoded = await self._db.read(lambda connection: store.get_index(connection, agent.id))
        status = await self._db.read(lambda connection: _read_status(connection, agent.id))
        base = await asyncio.to_thread(decode_index, encoded)
        secrets = await self._load_secrets(agent.id)
        search = SecretSearch({name: value.reveal().encode() for name, value in secrets.items()})
        searched = self._digest_values(secrets)
        is_base_searched = status.snapshot is not None and searched <= status.snapshot.searched
        async with self._content.receive(UNIXFS_V1_2025) as receiver:
            captured = await WorkspaceCapture(receiver, base, search, is_base_searched=is_base_searched).run(
                warden.tree, self._content.reader, model.content_scope(agent.tenant_id)
            )
            data = None if captured.index == base else await asyncio.to_thread(encode_index, captured.index)
            snapshot = _next_snapshot(agent, status.snapshot, captured, searched, trigger)

            def publish(connection: Connection) -> None:
                operation.require_current(connection)
                if snapshot is not status.snapshot:
                    store.insert_snapshot(connection, snapshot)
                else:
                    store.set_capture(connection, snapshot.id, captured.packs, searched)
                store.save_index(connection, agent.id, snapshot.id, clock.utc_now(), data)
                if snapshot.commit_sha is None:
                    self._history.enqueue(connection, agent, snapshot.id)
                _hold_needed(connection, agent, kept)

            if receiver.pack_id in captured.packs:
                await receiver.commit(publish)
            else:
                await self._db.write(publish)
        if snapshot is not status.snapshot:
            _log.info("snapshot.taken", agent=agent.id, cid=snapshot.cid, changes=snapshot.change_summary)


async def find_snapshot(db: Database, agent_id: str, cid: object) -> Snapshot:
    """Return the newest snapshot of an agent with that CID. Raises InvalidSnapshotCid, SnapshotNotFound."""
    name = model.parse_snapshot_cid(cid)
    found = await db.read(lambda connection: store.find_snapshot(connection, agent_id, name))
    if found is None:
        raise SnapshotNotFound
    return found


def remove_snapshots(connection: Connection, agent_id: str) -> None:
    """Remove the snapshots of an agent in the caller's transaction."""
    store.delete_all(connection, agent_id)
    release_packs(connection, _holder(agent_id))
    release_packs(connection, _state_holder(agent_id))


def _next_snapshot(
    agent: Agent,
    last: Snapshot | None,
    captured: CapturedWorkspace,
    searched: frozenset[str],
    trigger: SnapshotTrigger,
) -> Snapshot:
    """Return the snapshot of a captured workspace: the last one if nothing has changed."""
    if last is not None and last.cid == captured.cid:
        return last
    files = [entry for entry in captured.index.values() if entry.kind != "folder"]
    return Snapshot(
        id=ids.new_id(),
        agent_id=agent.id,
        tenant_id=agent.tenant_id,
        cid=captured.cid,
        commit_sha=None,
        trigger=trigger,
        change_summary=captured.difference.summary,
        files=len(files),
        size=sum(entry.size for entry in files),
        skipped=captured.skipped[: model.SKIPPED_LIMIT],
        skipped_count=len(captured.skipped),
        label=None,
        packs=captured.packs,
        searched=searched,
        created_at=clock.utc_now(),
    )


def _hold_needed(connection: Connection, agent: Agent, kept: str | None = None) -> None:
    """Remove expired snapshots but `kept`, and hold exactly the packs of the others."""
    tenants.lock_tenant(connection, agent.tenant_id)
    found = store.list_snapshots(connection, agent.id)
    status = _read_status(connection, agent.id)
    present = status.snapshot.id if status.snapshot else None
    expired = {one for one in model.find_expired(found, clock.utc_now()) if one not in {present, kept}}
    store.delete_snapshots(connection, list(expired))
    kept_ones = [snapshot for snapshot in found if snapshot.id not in expired]
    packs = {pack for snapshot in kept_ones for pack in snapshot.packs}
    hold_packs(connection, _holder(agent.id), agent.tenant_id, ContentNetwork.PRIVATE, packs)
    state_packs = {pack for snapshot in kept_ones for pack in snapshot.state_packs}
    hold_packs(connection, _state_holder(agent.id), agent.tenant_id, InternalNetwork.STATE, state_packs)


def _read_status(connection: Connection, agent_id: str) -> SyncStatus:
    found = store.get_sync(connection, agent_id)
    if found is None:
        return SyncStatus()
    synced_at, snapshot_id = found
    return SyncStatus(synced_at, None if snapshot_id is None else store.get_snapshot(connection, snapshot_id))


def _enqueue(connection: Connection, *, kind: str, agent: Agent, payload: Any) -> str:
    """Return the id of an equal operation that waits, or enqueue one."""
    for waiting in work.list_waiting_operations(connection, kind, agent.id):
        if waiting.payload == payload:
            return waiting.id
    return work.add_operation(connection, kind, agent.id, payload, host=agent.host_id).id


def _failure(operation: Operation, failed: type[Problem]) -> Problem:
    error: Mapping[str, str] = operation.error or {}
    if error.get("kind") == ProblemKind.UNAVAILABLE:
        return ServiceUnavailable(error["message"])
    return failed(detail=error.get("message"))


def _holder(agent_id: str) -> str:
    return f"agent/{agent_id}"


def _state_holder(agent_id: str) -> str:
    return f"agent-state/{agent_id}"
