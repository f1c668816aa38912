"""Take a snapshot of an open container: the workspace, and the state of the agent in a pack of its own.

The state is read when the workspace changed, or when something asks for a snapshot: the chats of an agent alone make
no automatic ones.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass

from sqlalchemy import Connection

from roost.agents.registry.agent_runtimes import AgentRuntimes, LoadValues
from roost.agents.registry.model import Agent
from roost.agents.workspace.snapshots import model, store
from roost.agents.workspace.snapshots.capture import TreeCapture
from roost.agents.workspace.snapshots.history import SnapshotHistory
from roost.agents.workspace.snapshots.index import WorkspaceIndex, decode_index
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

_WITHOUT_STATE_ALONE = (SnapshotTrigger.CHANGE, SnapshotTrigger.GIT)
"""Triggers for which a change of the state alone is no change."""
_HOME = "~/"
_HOLDER, _STATE_HOLDER = "agent/", "agent-state/"
"""Prefixes of the holders of packs, before the id of an agent."""
_log = log.get_logger("snapshots")


@dataclass(frozen=True)
class SnapshotTaker:
    _db: Database
    _content: ContentService
    _runtimes: AgentRuntimes
    _load_secrets: LoadValues
    _digest_value: Callable[[Sensitive[str]], str]
    _history: SnapshotHistory

    async def take(
        self,
        operation: ClaimedOperation,
        agent: Agent,
        warden: WardenClient,
        trigger: SnapshotTrigger,
        kept: str | None = None,
    ) -> int:
        """Take a snapshot, and return how many files changed; `kept` is a snapshot that does not expire."""
        last = (await self._db.read(lambda connection: read_status(connection, agent.id))).snapshot
        secrets = await self._load_secrets(agent.id)
        searched = self._digest_values(secrets)
        search = SecretSearch({name: value.reveal().encode() for name, value in secrets.items()})
        is_searched = last is not None and searched <= last.searched
        async with AsyncExitStack() as stack:

            async def open_capture(*, of_state: bool) -> TreeCapture:
                base = await load_index(self._db, agent.id, of_state=of_state)
                receiver = await stack.enter_async_context(self._content.receive(UNIXFS_V1_2025))
                return TreeCapture(receiver, base, search, is_base_searched=is_searched)

            workspace, state = await open_capture(of_state=False), None
            await workspace.run(warden.tree, self._content.reader, model.content_scope(agent.tenant_id))
            is_unchanged = last is not None and last.cid == workspace.cid
            if not (is_unchanged and is_searched and trigger in _WITHOUT_STATE_ALONE):
                state = await open_capture(of_state=True)
                if not await self._try_state(agent, warden, state):
                    state, searched = None, frozenset[str]()  # the state was not searched
            snapshot = _next_snapshot(agent, last, workspace, state, searched, trigger)
            trees = [tree for tree in (workspace, state) if tree]
            for tree in trees:
                await tree.commit()

            is_committed = await self._history.has_commit(snapshot)

            def publish(connection: Connection) -> None:
                operation.require_current(connection)
                for tree in trees:
                    tree.publish_pack(connection)
                if snapshot is not last:
                    insert_snapshot(connection, agent, snapshot)
                else:
                    store.set_capture(connection, snapshot.id, workspace.packs, state and state.packs, searched)
                indexes = workspace.changed_index, state and state.changed_index
                store.save_index(connection, agent.id, snapshot.id, clock.utc_now(), *indexes)
                clear_fault(connection, agent.id, model.SYNC)  # a reset takes snapshots, too
                if not is_committed:
                    self._history.enqueue(connection, agent, snapshot.id)
                hold_needed(connection, agent, kept)

            await self._db.write(publish)
        if snapshot is not last:
            _log.info("snapshot.taken", agent=agent.id, cid=snapshot.cid, changes=snapshot.change_summary)
        return workspace.difference.count

    async def is_last_committed(self, agent_id: str) -> bool:
        """Return whether the last snapshot has a commit, and was searched for the agent's present secrets."""
        searched = self._digest_values(await self._load_secrets(agent_id))
        snapshot = (await self._db.read(lambda connection: read_status(connection, agent_id))).snapshot
        return snapshot is not None and searched <= snapshot.searched and await self._history.has_commit(snapshot)

    def _digest_values(self, secrets: Mapping[str, Sensitive[str]]) -> frozenset[str]:
        return frozenset(map(self._digest_value, secrets.values()))

    async def _try_state(self, agent: Agent, warden: WardenClient, state: TreeCapture) -> bool:
        """Read the state; return False if the home cannot be read, which does not prevent the workspace's snapshot."""
        tree = StateTree(warden, self._runtimes.get_engine(agent.engine), state.base)
        try:
            await state.run(tree, self._content.reader, model.state_scope(agent.tenant_id))
        except ServiceUnavailable:
            raise
        except Problem as problem:
            _log.warning("snapshot.state_not_saved", agent=agent.id, reason=problem.detail or problem.message)
            return False
        return True


async def load_index(db: Database, agent_id: str, *, of_state: bool = False) -> WorkspaceIndex:
    """Load what the workspace or the state of an agent held when it was last read or written."""
    encoded = await db.read(lambda connection: store.get_index(connection, agent_id, of_state=of_state))
    return await asyncio.to_thread(decode_index, encoded)


def remove_snapshots(connection: Connection, agent_id: str) -> None:
    """Remove the snapshots of an agent in the caller's transaction."""
    store.delete_all(connection, agent_id)
    release_packs(connection, _HOLDER + agent_id)
    release_packs(connection, _STATE_HOLDER + agent_id)


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
    hold_packs(connection, _HOLDER + agent.id, agent.tenant_id, ContentNetwork.PRIVATE, packs)
    state_packs = {pack for snapshot in remaining for pack in snapshot.state_packs}
    hold_packs(connection, _STATE_HOLDER + agent.id, agent.tenant_id, InternalNetwork.STATE, state_packs)


def read_status(connection: Connection, agent_id: str) -> SyncStatus:
    found = store.get_sync(connection, agent_id)
    if found is None:
        return SyncStatus()
    synced_at, snapshot_id = found
    return SyncStatus(synced_at, None if snapshot_id is None else store.get_snapshot(connection, snapshot_id))


def _next_snapshot(
    agent: Agent,
    last: Snapshot | None,
    workspace: TreeCapture,
    state: TreeCapture | None,
    searched: frozenset[str],
    trigger: SnapshotTrigger,
) -> Snapshot:
    """Return the snapshot of a workspace and a state that were read: the last one if nothing has changed."""
    is_same = last is not None and last.cid == workspace.cid
    if last is not None and is_same and (state is None or state.cid == last.state_cid):
        return last
    files = workspace.list_files()
    state_files = () if state is None else state.list_files()
    skipped = [*workspace.skipped, *_list_skipped_state(state)]
    return Snapshot(
        id=ids.new_id(),
        agent_id=agent.id,
        tenant_id=agent.tenant_id,
        cid=workspace.cid,
        commit_sha=last.commit_sha if last is not None and is_same else None,
        trigger=trigger,
        change_summary="Only the state changed" if is_same else workspace.difference.summary,
        files=len(files),
        size=sum(entry.size for entry in files),
        skipped=skipped[: model.SKIPPED_LIMIT],
        skipped_count=len(skipped),
        packs=workspace.packs,
        searched=searched,
        created_at=clock.utc_now(),
        state_cid=None if state is None else state.cid,
        state_files=len(state_files),
        state_size=sum(entry.size for entry in state_files),
        state_packs=() if state is None else state.packs,
    )


def _list_skipped_state(state: TreeCapture | None) -> list[SkippedFile]:
    """Return the skipped files of a state with paths that tell them from the workspace's."""
    if state is None:
        return [SkippedFile(_HOME, SkipReason.UNREADABLE)]
    return [SkippedFile(_HOME + file.path, file.reason, file.secret) for file in state.skipped]
