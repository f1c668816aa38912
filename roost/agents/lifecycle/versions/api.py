"""Versions over HTTP, as clients of the reference service expect them; the workflows change an agent's version."""

from collections.abc import Mapping, Sequence
from typing import Annotated

from fastapi import APIRouter, Depends

from roost.agents.lifecycle.versions.model import version_key
from roost.agents.lifecycle.versions.service import VersionService
from roost.identity.authenticator import AgentCaller, AgentId, ServiceCaller
from roost.web.schemas import ApiSchema
from roost.web.service_registry import provide_service


class AvailableVersions(ApiSchema):
    current_version: str
    available_versions: Sequence[str]
    available_versions_per_engine: Mapping[str, Sequence[str]]
    engine: str


class UpdateCheck(ApiSchema):
    current_version: str
    latest_version: str
    update_available: bool


Service = Annotated[VersionService, Depends(provide_service(VersionService))]
router = APIRouter(prefix="/v0", tags=["agents"])


@router.get("/available-agent-versions")
async def list_versions(_: ServiceCaller, versions: Service) -> AvailableVersions:
    """List the versions of each engine, and the default for a new agent."""
    return AvailableVersions(**vars(await versions.list_for_new_agents()))


@router.get("/agents/{agentId}/available-agent-versions")
async def list_agent_versions(_: AgentCaller, agent_id: AgentId, versions: Service) -> AvailableVersions:
    """List the releases that the agent can be restarted with or updated to."""
    return AvailableVersions(**vars(await versions.list_for_agent(agent_id)))


@router.get("/agents/{agentId}/update")
async def check_update(_: AgentCaller, agent_id: AgentId, versions: Service) -> UpdateCheck:
    """Check for a newer version of the agent's engine."""
    current, latest = await versions.check_update(agent_id)
    is_newer = version_key(latest) > version_key(current)
    return UpdateCheck(current_version=current, latest_version=latest, update_available=is_newer)
