"""Versions over HTTP: what there is, and whether there is something newer. Changing is a story of the lifecycle."""

from typing import Annotated

from fastapi import APIRouter, Depends

from roost.agents.versions import schemas
from roost.agents.versions.service import VersionService
from roost.identity.authenticator import AgentCaller, AgentId, ServiceCaller
from roost.web.service_registry import provide_service

Service = Annotated[VersionService, Depends(provide_service(VersionService))]
router = APIRouter(prefix="/v0", tags=["agents"])


@router.get("/available-agent-versions")
async def list_versions(_: ServiceCaller, versions: Service) -> schemas.AvailableVersions:
    """The versions of each engine, and the one that a new agent gets."""
    return schemas.available(await versions.of_new_agents())


@router.get("/agents/{agentId}/available-agent-versions")
async def list_agent_versions(_: AgentCaller, agent_id: AgentId, versions: Service) -> schemas.AvailableVersions:
    """The versions that the agent can be restarted at or updated to; pre-releases are left out."""
    return schemas.available(await versions.of_agent(agent_id))


@router.get("/agents/{agentId}/update")
async def check_update(_: AgentCaller, agent_id: AgentId, versions: Service) -> schemas.UpdateCheck:
    """Whether there is a newer version of the agent's engine."""
    return schemas.checked(await versions.check(agent_id))
