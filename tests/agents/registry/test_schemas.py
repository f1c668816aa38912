from datetime import UTC, datetime

from roost.agents.registry.model import Agent, AgentProfile, AgentState
from roost.agents.registry.schemas import AgentFields

AT = datetime(2026, 11, 21, 10, 29, 47, 355000, tzinfo=UTC)


class WiderAgentFields(AgentFields):
    more: int


def test_how_an_agent_is_told() -> None:
    profile = AgentProfile("Ada", "counts", "calm", "\U0001f989", "openai/gpt-5")
    agent = Agent("a", "t", profile, "fake", "1.0.0", AgentState.RUNNING, "why", False, "host", AT, AT)
    told = WiderAgentFields.from_agent(agent, "http://a.agents.localhost", more=1).model_dump(
        mode="json", by_alias=True
    )
    assert told == {
        "agentId": "a",
        "userId": "t",
        "name": "Ada",
        "description": "counts",
        "vibe": "calm",
        "emoji": "\U0001f989",
        "model": "openai/gpt-5",
        "engine": "fake",
        "agentVersion": "1.0.0",
        "status": "running",
        "url": "http://a.agents.localhost",
        "createdAt": "2026-11-21T10:29:47.355000Z",
        "updatedAt": "2026-11-21T10:29:47.355000Z",
        "more": 1,
    }
