"""Console exec and files (contract: Files and snapshots; Console, devices, config)."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from roost.agents.workspace import schemas
from roost.agents.workspace.errors import InvalidCommand
from roost.agents.workspace.service import WorkspaceService
from roost.identity.authenticator import AgentCaller, AgentId
from roost.web.errors import refuse_body_with
from roost.web.schemas import BINARY_CONTENT
from roost.web.service_registry import provide_service

Service = Annotated[WorkspaceService, Depends(provide_service(WorkspaceService))]
router = APIRouter(prefix="/v0/agents/{agentId}", tags=["workspace"])


@router.post("/console/exec")
@refuse_body_with(InvalidCommand, "command", "cwd")
async def run_command(
    _: AgentCaller, agent_id: AgentId, body: schemas.ExecRequest, workspace: Service
) -> schemas.ExecResponse:
    """Run a shell command in the agent's container."""
    result = await workspace.run_command(agent_id, body.command, body.cwd, body.timeout_seconds)
    return schemas.ExecResponse(**vars(result))


@router.get("/files", response_class=Response, responses={200: {"content": BINARY_CONTENT}})
async def read_workspace_file(
    _: AgentCaller, agent_id: AgentId, path: Annotated[str, Query()], workspace: Service
) -> Response:
    """Return the bytes of a file in the agent's workspace."""
    return Response(await workspace.read_file(agent_id, path), media_type="application/octet-stream")


@router.post("/files/upload")
async def upload_workspace_file(
    _: AgentCaller, agent_id: AgentId, body: schemas.UploadRequest, workspace: Service
) -> schemas.UploadResponse:
    """Write a file to the `uploads/` folder of the workspace."""
    return schemas.UploadResponse(**vars(await workspace.upload_file(agent_id, body.filename, body.content_base64)))
