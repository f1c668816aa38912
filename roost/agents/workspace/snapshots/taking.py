"""Take a snapshot of an open container: the workspace, and the state of the agent in a pack of its own.

The state is read when the workspace changed, or when something asks for a snapshot: the chats of an agent alone make
no automatic ones.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack

from sqlalchemy import Connection

from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.model import Agent
from roost.agents.workspace.snapshots import model, store
from roost.agents.workspace.snapshots.capture import CapturedWorkspace, WorkspaceCapture
from roost.agents.workspace.snapshots.history import SnapshotHistory
from roost.agents.workspace.snapshots.index import IndexedEntry, WorkspaceIndex, decode_index, encode_index
from roost.agents.workspace.snapshots.model import SkippedFile, SkipReason, Snapshot, SnapshotTrigger, SyncStatus
from roost.agents.workspace.snapshots.secret_search import SecretSearch
from roost.agents.workspace.snapshots.state_tree import StateTree
from roost.core import clock, ids, log
from roost.core.db import Database, DataChange, record_change
from roost.core.problem import Problem, ServiceUnavailable
from roost.core.sensitive import Sensitive
from roost.identity import tenants
from roost.storage.content.model import ContentNetwork, InternalNetwork
from roost.storage.content.service import ContentService, hold_packs, release_packs
from roost.storage.content.unixfs.profile import UNIXFS_V1_2025
from roost.warden_client.client import WardenClient
from roost.work import ClaimedOperation
from roost.work.faults import clear_fault

LoadSecrets = Callable[[str], Awaitable[Mapping[str, Sensitive[str]]]]
"""Returns the values by name that a snapshot of the agent must not hold."""
_WITHOUT_STATE_ALONE = (SnapshotTrigger.CHANGE, SnapshotTrigger.GIT)
"""Triggers for which a change of the state alone is no change."""
_HOME = "~/"
_log = log.get_logger("snapshots")


class SnapshotTaker:
    def __init__(
        self,
        db: Database,
        content: ContentService,
        runtimes: AgentRuntimes,
        load_secrets: LoadSecrets,
        digest_value: Callable[[Sensitive[str]], str],
        history: SnapshotHistory,
    ) -> None:
        self._db = db
        self._content = content
        self._runtimes = runtimes
        self._load_secrets = load_secrets
        self._digest_value = digest_value
        self._history = history

    async def take(
        self,
        operation: ClaimedOperation,
        agent: Agent,
        warden: WardenClient,
        trigger: SnapshotTrigger,
        kept: str | None = None,
    ) -> None:
        """Take a snapshot, and record which files it has; `kept` is one that does not expire."""
        status = await self._db.read(lambda connection: read_status(connection, agent.id))
        base = await self._load_index(store.get_index, agent)
        secrets = await self._load_secrets(agent.id)
        search = SecretSearch({name: value.reveal().encode() for name, value in secrets.items()})
        searched = self._digest_values(secrets)
        is_base_searched = status.snapshot is not None and searched <= status.snapshot.searched
        async with AsyncExitStack() as stack:
            receiver, state_receiver = [
                await stack.enter_async_context(self._content.receive(UNIXFS_V1_2025)) for _ in range(2)
            ]
            scope = model.content_scope(agent.tenant_id)
            capture = WorkspaceCapture(receiver, base, search, is_base_searched=is_base_searched)
            captured = await capture.run(warden.tree, self._content.reader, scope)
            state, state_base = None, dict[str, IndexedEntry]()
            is_unchanged = status.snapshot is not None and status.snapshot.cid == captured.cid
            if not (is_unchanged and is_base_searched and trigger in _WITHOUT_STATE_ALONE):
                state_base = await self._load_index(store.get_state_index, agent)
                state_capture = WorkspaceCapture(state_receiver, state_base, search, is_base_searched=is_base_searched)
                state = await self._capture_state(agent, warden, state_capture, state_base)
                if state is None:  # and so not searched
                    searched = frozenset[str]()
            snapshot = _next_snapshot(agent, status.snapshot, captured, state, searched, trigger)
            data = await _encode_changed(base, captured)
            state_data = None if state is None else await _encode_changed(state_base, state)
            used = {*captured.packs, *(state.packs if state else ())}
            new = [one for one in (receiver, state_receiver) if one.pack_id in used]
            for one in new:
                await one.commit_blob()

            def publish(connection: Connection) -> None:
                operation.require_current(connection)
                for one in new:
                    one.publish_pack(connection)
                if snapshot is not status.snapshot:
                    insert_snapshot(connection, agent, snapshot)
                else:
                    store.set_capture(connection, snapshot.id, captured.packs, state.packs if state else None, searched)
                store.save_index(connection, agent.id, snapshot.id, clock.utc_now(), data, state_data)
                clear_fault(connection, agent.id, model.SYNC)  # a reset takes snapshots, too
                if snapshot.commit_sha is None:
                    self._history.enqueue(connection, agent, snapshot.id)
                hold_needed(connection, agent, kept)

            await self._db.write(publish)
        if snapshot is not status.snapshot:
            _log.info("snapshot.taken", agent=agent.id, cid=snapshot.cid, changes=snapshot.change_summary)

    async def is_last_committed(self, agent_id: str) -> bool:
        """Return whether the last snapshot has a commit, and was searched for the agent's present secrets."""
        searched = self._digest_values(await self._load_secrets(agent_id))
        snapshot = (await self._db.read(lambda connection: read_status(connection, agent_id))).snapshot
        return snapshot is not None and snapshot.commit_sha is not None and searched <= snapshot.searched

    def _digest_values(self, secrets: Mapping[str, Sensitive[str]]) -> frozenset[str]:
        return frozenset(map(self._digest_value, secrets.values()))

    async def _load_index(
        self, get: Callable[[Connection, str], bytes | None], agent: Agent
    ) -> dict[str, IndexedEntry]:
        encoded = await self._db.read(lambda connection: get(connection, agent.id))
        return dict(await asyncio.to_thread(decode_index, encoded))

    async def _capture_state(
        self,
        agent: Agent,
        warden: WardenClient,
        capture: WorkspaceCapture,
        base: WorkspaceIndex,
    ) -> CapturedWorkspace | None:
        """Return the state, None if the home cannot be read, which does not prevent the snapshot of the workspace."""
        tree = StateTree(warden, self._runtimes.get_engine(agent.engine), base)
        scope = model.state_scope(agent.tenant_id)
        try:
            return await capture.run(tree, self._content.reader, scope)
        except ServiceUnavailable:
            raise
        except Problem as problem:
            _log.warning("snapshot.state_not_saved", agent=agent.id, reason=problem.detail or problem.message)
            return None


def remove_snapshots(connection: Connection, agent_id: str) -> None:
    """Remove the snapshots of an agent in the caller's transaction."""
    store.delete_all(connection, agent_id)
    release_packs(connection, _holder(agent_id))
    release_packs(connection, _state_holder(agent_id))


def insert_snapshot(connection: Connection, agent: Agent, snapshot: Snapshot) -> None:
    """Insert a snapshot of an agent and record that, in the caller's transaction."""
    store.insert_snapshot(connection, snapshot)
    data = {"cid": snapshot.cid, "trigger": snapshot.trigger.value}
    record_change(connection, DataChange("snapshot", "created", snapshot.id, agent.tenant_id, agent.id, data))


def hold_needed(connection: Connection, agent: Agent, kept: str | None = None) -> None:
    """Remove expired snapshots but `kept`, and hold exactly the packs of the others."""
    tenants.lock_tenant(connection, agent.tenant_id)
    found = store.list_snapshots(connection, agent.id)
    status = read_status(connection, agent.id)
    present = status.snapshot.id if status.snapshot else None
    expired = {one for one in model.find_expired(found, clock.utc_now()) if one not in {present, kept}}
    store.delete_snapshots(connection, list(expired))
    remaining = [snapshot for snapshot in found if snapshot.id not in expired]
    packs = {pack for snapshot in remaining for pack in snapshot.packs}
    hold_packs(connection, _holder(agent.id), agent.tenant_id, ContentNetwork.PRIVATE, packs)
    state_packs = {pack for snapshot in remaining for pack in snapshot.state_packs}
    hold_packs(connection, _state_holder(agent.id), agent.tenant_id, InternalNetwork.STATE, state_packs)


def read_status(connection: Connection, agent_id: str) -> SyncStatus:
    found = store.get_sync(connection, agent_id)
    if found is None:
        return SyncStatus()
    synced_at, snapshot_id = found
    return SyncStatus(synced_at, None if snapshot_id is None else store.get_snapshot(connection, snapshot_id))


def _next_snapshot(
    agent: Agent,
    last: Snapshot | None,
    captured: CapturedWorkspace,
    state: CapturedWorkspace | None,
    searched: frozenset[str],
    trigger: SnapshotTrigger,
) -> Snapshot:
    """Return the snapshot of a captured workspace and state: the last one if nothing has changed."""
    is_same = last is not None and last.cid == captured.cid
    if last is not None and is_same and (state is None or state.cid == last.state_cid):
        return last
    files = _list_files(captured)
    state_files = [] if state is None else _list_files(state)
    skipped = [*captured.skipped, *_list_skipped_state(state)]
    return Snapshot(
        id=ids.new_id(),
        agent_id=agent.id,
        tenant_id=agent.tenant_id,
        cid=captured.cid,
        commit_sha=last.commit_sha if last is not None and is_same else None,
        trigger=trigger,
        change_summary="Only the state changed" if is_same else captured.difference.summary,
        files=len(files),
        size=sum(entry.size for entry in files),
        skipped=skipped[: model.SKIPPED_LIMIT],
        skipped_count=len(skipped),
        label=None,
        packs=captured.packs,
        searched=searched,
        created_at=clock.utc_now(),
        state_cid=None if state is None else state.cid,
        state_files=len(state_files),
        state_size=sum(entry.size for entry in state_files),
        state_packs=() if state is None else state.packs,
    )


def _list_files(captured: CapturedWorkspace) -> list[IndexedEntry]:
    return [entry for entry in captured.index.values() if entry.kind != "folder"]


def _list_skipped_state(state: CapturedWorkspace | None) -> list[SkippedFile]:
    """Return the skipped files of a state with paths that tell them from the workspace's."""
    if state is None:
        return [SkippedFile(_HOME, SkipReason.UNREADABLE)]
    return [SkippedFile(_HOME + file.path, file.reason, file.secret) for file in state.skipped]


async def _encode_changed(base: WorkspaceIndex, captured: CapturedWorkspace) -> bytes | None:
    """Encode an index, None if it is as before."""
    return None if captured.index == base else await asyncio.to_thread(encode_index, captured.index)


def _holder(agent_id: str) -> str:
    return f"agent/{agent_id}"


def _state_holder(agent_id: str) -> str:
    return f"agent-state/{agent_id}"
