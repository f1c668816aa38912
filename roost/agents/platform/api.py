"""What an agent asks about itself, at its own address (also without `/agents/{agentId}`) and from inside its box."""

from typing import Annotated

from fastapi import APIRouter, Depends

from roost.agents.platform import schemas
from roost.agents.platform.service import AgentSelfService
from roost.agents.registry.schemas import AgentFields
from roost.core import clock
from roost.identity.authenticator import AgentId, ExchangeCaller, InsideCaller, KnownCaller, SelfCaller
from roost.web.service_registry import provide_service

Service = Annotated[AgentSelfService, Depends(provide_service(AgentSelfService))]
router = APIRouter(prefix="/v0/agents/{agentId}", tags=["platform"])


@router.post("/platform/token")
async def exchange(_: ExchangeCaller, agent_id: AgentId, service: Service) -> schemas.PlatformTokenRecord:
    """A platform token, valid for an hour: with it the agent acts on its owner's behalf at the management address."""
    return schemas.token(await service.token(agent_id), clock.utc_now())


@router.get("/platform/whoami")
async def whoami(_: SelfCaller, agent_id: AgentId, service: Service) -> AgentFields:
    """The agent's own identity."""
    return AgentFields.from_agent(*await service.identity(agent_id))


@router.patch("/platform/metadata")
async def describe(
    _: InsideCaller, agent_id: AgentId, body: schemas.AgentMetadataRequest, service: Service
) -> schemas.AgentMetadataResponse:
    """Change what people see of the agent: name, description, vibe, emoji."""
    return schemas.AgentMetadataResponse(agent=AgentFields.from_agent(*await service.describe(agent_id, body.apply)))


@router.get("/status")
async def status(_: KnownCaller, agent_id: AgentId, service: Service) -> schemas.AgentStatusRecord:
    """Whether the agent runs: what the server knows, and what its warden says of the gateway now."""
    return schemas.status(*await service.status(agent_id))
