"""The scripts of an agent's manifest over HTTP."""

from typing import Annotated

from fastapi import APIRouter, Depends

from roost.agents.workspace.scripts import schemas
from roost.agents.workspace.scripts.schemas import ScriptListRecord
from roost.agents.workspace.scripts.service import ScriptService
from roost.identity.authenticator import AgentCaller, AgentId
from roost.web.service_registry import provide_service

Service = Annotated[ScriptService, Depends(provide_service(ScriptService))]
router = APIRouter(prefix="/v0/agents/{agentId}/scripts", tags=["scripts"])


@router.get("")
async def show_scripts(_: AgentCaller, agent_id: AgentId, scripts: Service) -> ScriptListRecord:
    """Show the status of the build and start scripts."""
    return ScriptListRecord.from_scripts(await scripts.list(agent_id))


@router.post("/retry")
async def retry_scripts(_: AgentCaller, agent_id: AgentId, scripts: Service) -> schemas.LaunchScriptsResponse:
    """Run the build and start scripts again. Responds at once; the agent's details report the progress."""
    await scripts.retry(agent_id)
    return schemas.LaunchScriptsResponse(message="Scripts launched")
