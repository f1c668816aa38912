"""The agent's last log lines over HTTP."""

from typing import Annotated

from fastapi import APIRouter, Depends

from roost.agents.logs import wire
from roost.agents.logs.service import Logs
from roost.identity.door import AgentCaller, AgentId
from roost.web.provide import provide

Service = Annotated[Logs, Depends(provide(Logs))]
router = APIRouter(prefix="/v0/agents/{agentId}", tags=["logs"])


@router.get("/logs")
async def tail(_: AgentCaller, agent_id: AgentId, logs: Service) -> wire.LogText:
    """The last 100 lines, as a single string."""
    return wire.LogText(logs=await logs.tail(agent_id))
