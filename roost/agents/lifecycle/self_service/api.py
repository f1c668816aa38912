"""Requests of an agent about itself, at its own address and from its container.

At its own address, `/agents/{agentId}` can be omitted.
"""

from typing import Annotated

from fastapi import APIRouter, Depends

from roost.agents.lifecycle.self_service import schemas
from roost.agents.lifecycle.self_service.service import AgentSelfService
from roost.agents.registry.schemas import AgentFields
from roost.core import clock
from roost.identity.authenticator import AgentId, ExchangeCaller, InsideCaller, KnownCaller, SelfCaller
from roost.web.service_registry import provide_service

Service = Annotated[AgentSelfService, Depends(provide_service(AgentSelfService))]
router = APIRouter(prefix="/v0/agents/{agentId}", tags=["platform"])


@router.post("/platform/token")
async def create_platform_token(
    caller: ExchangeCaller, agent_id: AgentId, service: Service
) -> schemas.PlatformTokenRecord:
    """Issue a platform token, with which the agent acts for its owner for an hour.

    It counts at the management address, or in the container alone if it was asked for there.
    """
    return schemas.platform_token_record(await service.issue_token(caller, agent_id), clock.utc_now())


@router.get("/platform/whoami")
async def get_platform_identity(_: SelfCaller, agent_id: AgentId, service: Service) -> AgentFields:
    """Return the agent's own identity."""
    return AgentFields.from_agent(*await service.get_identity(agent_id))


@router.patch("/platform/metadata")
async def update_agent_metadata(
    _: InsideCaller, agent_id: AgentId, body: schemas.AgentMetadataRequest, service: Service
) -> schemas.AgentMetadataResponse:
    """Change the agent's name, description, vibe, emoji and model; another model restarts its gateway."""
    return schemas.AgentMetadataResponse(
        agent=AgentFields.from_agent(*await service.update_profile(agent_id, body.apply))
    )


@router.get("/status")
async def get_agent_status(_: KnownCaller, agent_id: AgentId, service: Service) -> schemas.AgentStatusRecord:
    """Return the agent's state, and the current status of its gateway's process."""
    return schemas.agent_status_record(*await service.get_status(agent_id))
