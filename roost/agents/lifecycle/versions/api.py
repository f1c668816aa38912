"""Versions over HTTP: lists and update checks; the lifecycle slice changes an agent's version."""

from typing import Annotated

from fastapi import APIRouter, Depends

from roost.agents.lifecycle.versions import schemas
from roost.agents.lifecycle.versions.service import VersionService
from roost.identity.authenticator import AgentCaller, AgentId, ServiceCaller
from roost.web.service_registry import provide_service

Service = Annotated[VersionService, Depends(provide_service(VersionService))]
router = APIRouter(prefix="/v0", tags=["agents"])


@router.get("/available-agent-versions")
async def list_versions(_: ServiceCaller, versions: Service) -> schemas.AvailableVersions:
    """List the versions of each engine, and the default for a new agent."""
    return schemas.available_versions(await versions.list_for_new_agents())


@router.get("/agents/{agentId}/available-agent-versions")
async def list_agent_versions(_: AgentCaller, agent_id: AgentId, versions: Service) -> schemas.AvailableVersions:
    """List the releases that the agent can be restarted with or updated to."""
    return schemas.available_versions(await versions.list_for_agent(agent_id))


@router.get("/agents/{agentId}/update")
async def check_update(_: AgentCaller, agent_id: AgentId, versions: Service) -> schemas.UpdateCheck:
    """Check for a newer version of the agent's engine."""
    return schemas.update_check(await versions.check_update(agent_id))
