"""Requests of an agent about itself, at its own address and from its container.

At its own address, `/agents/{agentId}` can be omitted. The contract specifies `token` only.
"""

from dataclasses import replace
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends
from pydantic import Field

from roost.agents.lifecycle.self_service.service import AgentSelfService
from roost.agents.registry.model import (
    DESCRIPTION_LIMIT,
    EMOJI_LIMIT,
    MODEL_LIMIT,
    VIBE_LIMIT,
    Agent,
    AgentProfile,
    AgentState,
    validate_agent_name,
)
from roost.agents.registry.schemas import AgentFields
from roost.core import clock
from roost.identity.authenticator import AgentId, ExchangeCaller, InsideCaller, KnownCaller, SelfCaller
from roost.identity.platform_tokens import IssuedPlatformToken
from roost.web.schemas import ApiSchema, Moment, Text
from roost.web.service_registry import provide_service


class PlatformTokenRecord(ApiSchema):
    token: str = Field(examples=["eyJhbGciOiJIUzI1NiJ9.e30.example"])
    expires_at: Moment
    expires_in: int
    """Seconds."""


class AgentMetadataRequest(ApiSchema):
    """Changes of an agent's profile: omitted fields stay, null removes a field except the name."""

    name: str | None = None
    description: Annotated[Text, Field(max_length=DESCRIPTION_LIMIT)] | None = None
    vibe: Annotated[Text, Field(max_length=VIBE_LIMIT)] | None = None
    emoji: Annotated[Text, Field(max_length=EMOJI_LIMIT)] | None = None
    model: Annotated[Text, Field(min_length=1, max_length=MODEL_LIMIT, examples=["openai/gpt-5"])] | None = None

    def apply(self, profile: AgentProfile) -> AgentProfile:
        """Apply the sent fields to a profile. Raises InvalidAgentName."""
        sent = {field: getattr(self, field) for field in self.model_fields_set}
        if "name" in sent:
            sent["name"] = validate_agent_name(self.name or "")
        return replace(profile, **sent)


class AgentMetadataResponse(ApiSchema):
    success: bool = True
    agent: AgentFields


class AgentStatusRecord(ApiSchema):
    agent_id: str
    status: AgentState
    status_reason: str | None
    process_status: str
    process_id: int | None
    engine: str
    agent_version: str


def platform_token_record(issued: IssuedPlatformToken, now: datetime) -> PlatformTokenRecord:
    left = int((issued.expires_at - now).total_seconds())
    return PlatformTokenRecord(token=issued.token.reveal(), expires_at=issued.expires_at, expires_in=left)


def agent_status_record(agent: Agent, process_status: str, process_id: int | None) -> AgentStatusRecord:
    return AgentStatusRecord(
        agent_id=agent.id,
        status=agent.state,
        status_reason=agent.reason,
        process_status=process_status,
        process_id=process_id,
        engine=agent.engine,
        agent_version=agent.engine_version,
    )


Service = Annotated[AgentSelfService, Depends(provide_service(AgentSelfService))]
router = APIRouter(prefix="/v0/agents/{agentId}", tags=["platform"])


@router.post("/platform/token")
async def create_platform_token(caller: ExchangeCaller, agent_id: AgentId, service: Service) -> PlatformTokenRecord:
    """Issue a platform token, with which the agent acts for its owner for an hour.

    It counts at the management address, or in the container alone if it was asked for there.
    """
    return platform_token_record(await service.issue_token(caller, agent_id), clock.utc_now())


@router.get("/platform/whoami")
async def get_platform_identity(_: SelfCaller, agent_id: AgentId, service: Service) -> AgentFields:
    """Return the agent's own identity."""
    return AgentFields.from_agent(*await service.get_identity(agent_id))


@router.patch("/platform/metadata")
async def update_agent_metadata(
    _: InsideCaller, agent_id: AgentId, body: AgentMetadataRequest, service: Service
) -> AgentMetadataResponse:
    """Change the agent's name, description, vibe, emoji and model; another model restarts its gateway."""
    return AgentMetadataResponse(agent=AgentFields.from_agent(*await service.update_profile(agent_id, body.apply)))


@router.get("/status")
async def get_agent_status(_: KnownCaller, agent_id: AgentId, service: Service) -> AgentStatusRecord:
    """Return the agent's state, and the current status of its gateway's process."""
    return agent_status_record(*await service.get_status(agent_id))
