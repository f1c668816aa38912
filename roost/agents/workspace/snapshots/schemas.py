"""Requests and responses of snapshots (contract: Files and snapshots); what it leaves open follows existing clients."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, StrictBool

from roost.agents.registry.schemas import FaultRecord
from roost.agents.workspace.snapshots.model import LABEL_LIMIT, Snapshot, SnapshotTrigger, SyncStatus
from roost.web.schemas import ApiSchema, Moment, Text

_PrintablePath = Annotated[str, BeforeValidator(lambda path: path.encode("utf-8", "replace").decode())]


class ListSnapshotsQuery(ApiSchema):
    page: Annotated[int, Field(ge=1, le=10_000)] = 1


class ResetRequest(ApiSchema):
    """`state` also resets the agent's memory; `snapshotId` selects one of several snapshots with that CID."""

    snapshot_cid: str
    snapshot_id: str | None = None
    state: StrictBool = False


class LabelRequest(ApiSchema):
    """A snapshot with a label is kept; `null` removes it."""

    label: Annotated[Text, Field(min_length=1, max_length=LABEL_LIMIT)] | None


class DiffQuery(ApiSchema):
    """Two snapshots, and optionally the file whose text to compare."""

    old: Annotated[str, Field(alias="from")]
    new: Annotated[str, Field(alias="to")]
    path: str | None = None


class SkippedFileRecord(ApiSchema):
    path: _PrintablePath
    reason: str
    secret: str | None


class SnapshotRecord(ApiSchema):
    agent_id: str
    user_id: str
    snapshot_id: str
    snapshot_cid: str
    commit_sha: str | None
    change_summary: str
    content_diff: None = None
    created_at: Moment
    trigger: SnapshotTrigger
    label: str | None
    files: int
    size: int
    has_state: bool
    state_files: int
    state_size: int
    skipped: Sequence[SkippedFileRecord]
    skipped_count: int

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> Self:
        skipped = [SkippedFileRecord(**vars(file)) for file in snapshot.skipped]
        fields: dict[str, Any] = {**vars(snapshot), "skipped": skipped, "has_state": snapshot.state_cid is not None}
        return cls(**fields, user_id=snapshot.tenant_id, snapshot_id=snapshot.id, snapshot_cid=snapshot.cid)


class SnapshotListRecord(ApiSchema):
    agent_id: str
    snapshots: Sequence[SnapshotRecord]
    has_more: bool


class SyncStatusRecord(ApiSchema):
    """`fault`: why snapshots fail, and since when nothing was saved."""

    agent_id: str
    configured: Literal[True] = True
    missing: Sequence[str] = ()
    last_sync: Moment | None
    snapshot_cid: str | None
    message: str
    fault: FaultRecord | None

    @classmethod
    def from_status(cls, agent_id: str, status: SyncStatus) -> Self:
        fault = status.fault and FaultRecord(**vars(status.fault))
        cid = status.snapshot.cid if status.snapshot else None
        message = _describe_status(status)
        return cls(agent_id=agent_id, last_sync=status.synced_at, snapshot_cid=cid, message=message, fault=fault)


class SyncRecord(ApiSchema):
    """Result of a sync; `skipped` are the files that the snapshot leaves out."""

    success: Literal[True] = True
    message: str
    last_sync: Moment
    snapshot_cid: str
    commit_sha: str | None
    change_summary: str
    skipped: Sequence[SkippedFileRecord]
    skipped_count: int

    @classmethod
    def from_status(cls, synced_at: datetime, snapshot: Snapshot) -> Self:
        record = SnapshotRecord.from_snapshot(snapshot)
        skipped = f"; {record.skipped_count} files were skipped" if record.skipped_count else ""
        return cls(**vars(record), message=f"Workspace is saved{skipped}", last_sync=synced_at)


class ResetRecord(ApiSchema):
    success: Literal[True] = True
    message: str
    snapshot_cid: str
    commit_sha: str | None

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot, *, with_state: bool) -> Self:
        message = f"The workspace {'and the state equal' if with_state else 'equals'} the snapshot"
        return cls(message=message, snapshot_cid=snapshot.cid, commit_sha=snapshot.commit_sha)


class ComparedFileRecord(ApiSchema):
    path: _PrintablePath
    change: Literal["added", "deleted", "changed"]


class SnapshotDiffRecord(ApiSchema):
    """Files that differ; `diff` is the unified diff of one of them."""

    changes: Sequence[ComparedFileRecord]
    truncated: bool
    diff: str | None


def _describe_status(status: SyncStatus) -> str:
    if status.fault is not None:
        return f"Not saved since {status.fault.failing_since:%Y-%m-%d %H:%M:%S} UTC: {status.fault.reason}"
    return "Never synced" if status.synced_at is None else "Synced"
