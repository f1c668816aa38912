"""Snapshots, what they skip, and which of them are kept. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum

from roost.core.problem import InvalidInput, NotFound, Problem
from roost.storage.content.model import ContentNetwork, ContentScope, InternalNetwork
from roost.storage.content.unixfs.cid import DAG_PB, SHA2_256, Cid
from roost.storage.content.unixfs.errors import InvalidCid
from roost.work.faults import OperationFault


class InvalidSnapshotCid(InvalidInput):
    message = "Invalid snapshot CID"
    field = "snapshotCid"


class SnapshotNotFound(NotFound):
    """The CID is not in the agent's history."""

    message = "Snapshot not found"


class StateNotFound(NotFound):
    """The snapshot has a workspace only."""

    message = "The snapshot has no state"


class SyncFailed(Problem):
    message = "Sync failed"


class ResetFailed(Problem):
    message = "Reset failed"


FILE_MODE, FOLDER_MODE = 0o644, 0o755
"""Permissions that a tree does not store, so that ordinary files have the CIDs of uploads."""
SYNC, RESET, RESTORE, COMMIT = "agent.snapshot", "agent.reset", "agent.restore", "agent.commit"
"""Kinds of operations; a restore is the reset of a new agent, which enqueues the agent's start."""
RESTORE_SECONDS = 600.0
"""Longest wait for a snapshot or a reset."""
PAGE_SIZE = 10
"""Snapshots of a page; the first page is the contract's list."""
LABEL_LIMIT = 100
SKIPPED_LIMIT = 100
"""Skipped files that a snapshot names; the others are counted."""
_KEEP_ALL, _KEEP_DAILY = timedelta(days=1), timedelta(days=31)


class SnapshotTrigger(StrEnum):
    """Why a snapshot was taken."""

    REQUEST = "request"
    CHANGE = "change"
    FORK = "fork"
    GIT = "git"
    IMPORT = "import"
    RESET = "reset"
    RESTART = "restart"
    UPDATE = "update"
    STOP = "stop"
    TEMPLATE = "template"


class SkipReason(StrEnum):
    """Why an entry of the workspace is not in a snapshot."""

    SPECIAL_FILE = "special"
    UNREADABLE = "unreadable"
    HOLDS_SECRET = "secret"  # noqa: S105 - a reason, no credential
    NAME = "name"


@dataclass(frozen=True)
class SkippedFile:
    """An entry that a snapshot leaves out; `secret` is the name of the secret whose value it holds."""

    path: str
    reason: SkipReason
    secret: str | None = None


@dataclass(frozen=True)
class Snapshot:
    """A version of a workspace, named by the CID of its UnixFS directory, and of the agent's state.

    commit_sha: its commit in the agent's repository, None if there is none. change_summary: against the snapshot
    before. files, size: number and bytes of its files and links. skipped_count: number of all entries that are left
    out, of which `skipped` names the first. packs: of the workspace. state_cid: of the UnixFS directory with the state,
    paths relative to the home; None if no state was saved. It is never shown. searched: keyed
    digests of the secrets that none of its files holds.
    """

    id: str
    agent_id: str
    tenant_id: str
    cid: str
    trigger: SnapshotTrigger
    change_summary: str
    files: int
    size: int
    packs: Sequence[str]
    created_at: datetime
    commit_sha: str | None = None
    skipped: Sequence[SkippedFile] = ()
    skipped_count: int = 0
    label: str | None = None
    state_cid: str | None = None
    state_files: int = 0
    state_size: int = 0
    state_packs: Sequence[str] = ()
    searched: frozenset[str] = frozenset()


@dataclass(frozen=True)
class SyncStatus:
    """When the workspace was last compared with its snapshots, and the snapshot that it equalled then."""

    synced_at: datetime | None = None
    snapshot: Snapshot | None = None
    fault: OperationFault | None = None
    """Failures of snapshots since then."""


def content_scope(tenant_id: str) -> ContentScope:
    """Return where the workspaces of a tenant's snapshots are."""
    return ContentScope(ContentNetwork.PRIVATE, tenant_id)


def state_scope(tenant_id: str) -> ContentScope:
    """Return where the states of a tenant's agents are, which no address of the storage API serves."""
    return ContentScope(InternalNetwork.STATE, tenant_id)


def parse_snapshot_cid(text: object) -> str:
    """Return the canonical CID of a folder. Raises InvalidSnapshotCid, SnapshotNotFound for a CID of another kind."""
    try:
        cid = Cid.parse(text) if isinstance(text, str) else None
    except InvalidCid:
        raise InvalidSnapshotCid from None
    if cid is None:
        raise InvalidSnapshotCid
    if cid.codec != DAG_PB or cid.hash != SHA2_256:  # a CID, but of no snapshot
        raise SnapshotNotFound
    return str(cid.v1())


def find_expired(snapshots: Iterable[Snapshot], now: datetime) -> Sequence[str]:
    """Return the ids of the snapshots that need not be kept, of one agent's, newest first.

    Kept are the newest ten, those with a label, all of the last day, and the last of each day of the last month.
    """
    expired: list[str] = []
    days: set[date] = set()
    for number, snapshot in enumerate(snapshots):
        age, day = now - snapshot.created_at, snapshot.created_at.date()
        is_last_of_day = day not in days
        days.add(day)
        if number < PAGE_SIZE or snapshot.label is not None or age < _KEEP_ALL:
            continue
        if not (is_last_of_day and age < _KEEP_DAILY):
            expired.append(snapshot.id)
    return expired
