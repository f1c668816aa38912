"""The scripts of an agent's manifest over HTTP."""

from typing import Annotated

from fastapi import APIRouter, Depends

from roost.agents.scripts import wire
from roost.agents.scripts.service import Scripts
from roost.agents.scripts.shape import ScriptRecords
from roost.identity.door import AgentCaller, AgentId
from roost.web.provide import provide

Service = Annotated[Scripts, Depends(provide(Scripts))]
router = APIRouter(prefix="/v0/agents/{agentId}/scripts", tags=["scripts"])


@router.get("")
async def show_scripts(_: AgentCaller, agent_id: AgentId, scripts: Service) -> ScriptRecords:
    """What became of the build and start scripts."""
    return ScriptRecords.of(await scripts.show(agent_id))


@router.post("/retry")
async def retry_scripts(_: AgentCaller, agent_id: AgentId, scripts: Service) -> wire.Launched:
    """Run build, then start, anew. Answers at once; how they fare is told by the agent's detail."""
    await scripts.retry(agent_id)
    return wire.Launched(message="Scripts launched")
