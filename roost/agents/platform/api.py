"""What an agent asks about itself, at its own address (also without `/agents/{agentId}`) and from inside its box."""

from typing import Annotated

from fastapi import APIRouter, Depends

from roost.agents.platform import wire
from roost.agents.platform.service import SelfService
from roost.agents.roster.shape import AgentShape
from roost.core import clock
from roost.identity.door import AgentId, ExchangeCaller, InsideCaller, KnownCaller, SelfCaller
from roost.web.provide import provide

Service = Annotated[SelfService, Depends(provide(SelfService))]
router = APIRouter(prefix="/v0/agents/{agentId}", tags=["platform"])


@router.post("/platform/token")
async def exchange(_: ExchangeCaller, agent_id: AgentId, service: Service) -> wire.PlatformToken:
    """A platform token, valid for an hour: with it the agent acts on its owner's behalf at the management address."""
    return wire.token(await service.token(agent_id), clock.now())


@router.get("/platform/whoami")
async def whoami(_: SelfCaller, agent_id: AgentId, service: Service) -> AgentShape:
    """The agent's own identity."""
    return AgentShape.of(*await service.identity(agent_id))


@router.patch("/platform/metadata")
async def describe(_: InsideCaller, agent_id: AgentId, body: wire.Metadata, service: Service) -> wire.Described:
    """Change what people see of the agent: name, description, vibe, emoji."""
    return wire.Described(agent=AgentShape.of(*await service.describe(agent_id, body.apply)))


@router.get("/status")
async def status(_: KnownCaller, agent_id: AgentId, service: Service) -> wire.Status:
    """Whether the agent runs: what the server knows, and what its warden says of the gateway now."""
    return wire.status(*await service.status(agent_id))
