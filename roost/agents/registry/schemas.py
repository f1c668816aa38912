"""Fields that all responses about an agent share (decision 0010)."""

from typing import Any, Self

from pydantic import Field

from roost.agents.registry.model import Agent, AgentState
from roost.web.schemas import ApiSchema, Moment


class FaultRecord(ApiSchema):
    """Work of an agent that keeps failing: when it did first and last since its last success, how often, and why."""

    kind: str = Field(examples=["agent.snapshot"])
    failing_since: Moment
    failed_at: Moment
    failures: int
    reason: str


class AgentFields(ApiSchema):
    agent_id: str
    user_id: str
    name: str
    description: str | None
    vibe: str | None
    emoji: str | None
    model: str | None = Field(default=None, description="The preferred default model; null: the server's first.")
    engine: str
    agent_version: str
    status: AgentState
    url: str
    created_at: Moment
    updated_at: Moment

    @classmethod
    def from_agent(cls, agent: Agent, url: str, **more: Any) -> Self:
        """Create the record; `more` has the additional fields of a subclass."""
        fields = {**vars(agent), **vars(agent.profile), **more}
        return cls(
            **fields,
            agent_id=agent.id,
            user_id=agent.tenant_id,
            agent_version=agent.engine_version,
            status=agent.state,
            url=url,
        )
