"""API shapes of an agent's requests about itself; the contract specifies `token` only."""

from dataclasses import replace
from datetime import datetime
from typing import Annotated

from pydantic import Field

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
from roost.identity.platform_tokens import IssuedPlatformToken
from roost.web.schemas import ApiSchema, Moment, Text


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
