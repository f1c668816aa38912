"""Snapshots of a workspace (contract: Files and snapshots); pages, labels and differences are beyond it."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query

from roost.agents.workspace.snapshots import schemas
from roost.agents.workspace.snapshots.model import InvalidSnapshotCid
from roost.agents.workspace.snapshots.service import SnapshotService
from roost.identity.authenticator import AgentCaller, AgentId
from roost.web.errors import refuse_body_with
from roost.web.service_registry import provide_service

SnapshotCid = Annotated[str, Path(alias="snapshotCid")]
Service = Annotated[SnapshotService, Depends(provide_service(SnapshotService))]
router = APIRouter(prefix="/v0/agents/{agentId}/snapshots", tags=["snapshots"])


@router.get("")
async def list_snapshots(
    _: AgentCaller, agent_id: AgentId, query: Annotated[schemas.ListSnapshotsQuery, Query()], snapshots: Service
) -> schemas.SnapshotListRecord:
    """List ten snapshots, newest first; `page` continues with older ones."""
    found, has_more = await snapshots.list_page(agent_id, query.page)
    records = [schemas.SnapshotRecord.from_snapshot(snapshot) for snapshot in found]
    return schemas.SnapshotListRecord(agent_id=agent_id, snapshots=records, has_more=has_more)


@router.get("/sync")
async def get_sync_status(_: AgentCaller, agent_id: AgentId, snapshots: Service) -> schemas.SyncStatusRecord:
    """Return when the workspace was last compared with its snapshots."""
    return schemas.SyncStatusRecord.from_status(agent_id, await snapshots.get_status(agent_id))


@router.post("/sync")
async def take_snapshot(_: AgentCaller, agent_id: AgentId, snapshots: Service) -> schemas.SyncRecord:
    """Take a snapshot now; without changes the last one is returned."""
    return schemas.SyncRecord.from_status(*await snapshots.sync(agent_id))


@router.post("/reset")
@refuse_body_with(InvalidSnapshotCid, "snapshotCid")
async def reset_workspace(
    _: AgentCaller, agent_id: AgentId, body: schemas.ResetRequest, snapshots: Service
) -> schemas.ResetRecord:
    """Make the workspace equal to a snapshot of this agent; what it has now is saved as a snapshot first.

    With `state`, the agent's memory too: its sessions, configuration and tasks. Its gateway restarts then.
    """
    found = await snapshots.reset(agent_id, body.snapshot_cid, with_state=body.state, snapshot_id=body.snapshot_id)
    return schemas.ResetRecord.from_snapshot(found, with_state=body.state)


@router.put("/{snapshotCid}/label")
async def label_snapshot(
    _: AgentCaller, agent_id: AgentId, snapshot_cid: SnapshotCid, body: schemas.LabelRequest, snapshots: Service
) -> schemas.SnapshotRecord:
    """Label a snapshot, which is then kept, or remove its label."""
    return schemas.SnapshotRecord.from_snapshot(await snapshots.set_label(agent_id, snapshot_cid, body.label))


@router.get("/diff")
async def compare_snapshots(
    _: AgentCaller, agent_id: AgentId, query: Annotated[schemas.DiffQuery, Query()], snapshots: Service
) -> schemas.SnapshotDiffRecord:
    """List the files that differ between two snapshots; with `path`, also the unified diff of that file's text."""
    comparison = await snapshots.compare(agent_id, query.old, query.new, query.path)
    return schemas.SnapshotDiffRecord.model_validate(comparison, from_attributes=True)
