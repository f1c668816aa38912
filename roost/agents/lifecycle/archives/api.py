"""Archives of agents over HTTP, beyond the contract."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import StreamingResponse

from roost.agents.lifecycle.archives.export import AgentExporter
from roost.agents.lifecycle.archives.importer import AgentImporter
from roost.agents.lifecycle.archives.schemas import MEDIA_TYPE, ImportAgentResponse
from roost.agents.lifecycle.workflows.details import AgentDetails
from roost.agents.lifecycle.workflows.schemas import StartFailureResponse
from roost.identity.authenticator import AgentId, OwnerCaller, ServiceCaller
from roost.web.responses import content_disposition
from roost.web.schemas import BINARY, describe_body
from roost.web.service_registry import provide_service

Details = Annotated[AgentDetails, Depends(provide_service(AgentDetails))]
Exporter = Annotated[AgentExporter, Depends(provide_service(AgentExporter))]
Importer = Annotated[AgentImporter, Depends(provide_service(AgentImporter))]
router = APIRouter(prefix="/v0/agents", tags=["archives"])


@router.get(
    "/{agentId}/export",
    response_class=Response,
    responses={200: {"content": {MEDIA_TYPE: {"schema": BINARY}}}, 409: {}},
)
async def export_agent(
    _: OwnerCaller,
    agent_id: AgentId,
    exporter: Exporter,
    snapshot_cid: Annotated[str | None, Query(alias="snapshotCid")] = None,
) -> Response:
    """Take a snapshot, or take an older one, and return the agent as one file without the values of its secrets."""
    archive = await exporter.open_archive(agent_id, snapshot_cid)
    headers = {
        "Content-Disposition": content_disposition("attachment", archive.filename),
        "Cache-Control": "no-store",
    }
    return StreamingResponse(archive.stream(), headers=headers, media_type=f"{MEDIA_TYPE}; version=1")


@router.post(
    "/import",
    status_code=201,
    responses={500: {"model": StartFailureResponse}},
    openapi_extra=describe_body(MEDIA_TYPE, BINARY),
)
async def import_agent(
    caller: ServiceCaller, request: Request, importer: Importer, details: Details, name: str | None = None
) -> ImportAgentResponse:
    """Create an agent of an exported file and wait until its gateway answers; no secret is attached to it."""
    async with details.describe_failure(caller):
        imported = await importer.import_agent(caller, request.stream(), name)
    agent = await details.get_record(caller, imported.agent)
    return ImportAgentResponse.from_manifest(agent, imported.manifest, imported.missing_skills, imported.skipped_tasks)
