"""Requests and records: optional fields, hidden values, and the names that clients read."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from roost.agents.lifecycle.workflows import schemas
from roost.agents.lifecycle.workflows.schemas import CreateAgentRequest, RestartAgentRequest
from roost.agents.registry.errors import InvalidAgentName
from roost.agents.registry.model import Agent, AgentProfile, AgentState
from roost.core.sensitive import Sensitive

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
AGENT = Agent("a1", "t1", AgentProfile("Ada"), "fake", "1.0.0", AgentState.FAILED, "because", False, "host", AT, AT)


def test_a_list_is_encoded_as_its_schema() -> None:
    agents = [(AGENT, "http://a"), (replace(AGENT, id="[]", state=AgentState.RUNNING), "http://b")]
    for kept in (agents, agents[:1], agents[::-1], []):
        records = [schemas.agent_record(agent, url, last_used_at=AT if agent is AGENT else None) for agent, url in kept]
        whole = schemas.AgentList(agents=records, agent_limit=7).model_dump_json(by_alias=True)
        assert schemas.encode_agent_list(kept, {AGENT.id: AT}, 7) == whole


def test_a_create_request_with_the_fewest_and_the_most_fields() -> None:
    least = CreateAgentRequest.model_validate({"name": " Ada ", "unknown": 1}).to_create_agent()
    assert least.profile == AgentProfile("Ada")
    assert (least.engine, least.secret_ids, least.channels) == (None, (), {})
    most = CreateAgentRequest.model_validate(
        {
            "name": "Ada",
            "description": "counts",
            "vibe": "calm",
            "emoji": "🦉",
            "engine": "hermes",
            "model": "openai/gpt-5",
            "secretIds": ["s"],
            "channels": {"telegram": {"botToken": "1:very-secret", "other": []}, "slack": {}},
        }
    ).to_create_agent()
    assert most.profile == AgentProfile("Ada", "counts", "calm", "🦉", "openai/gpt-5")
    assert (most.engine, most.secret_ids) == ("hermes", ["s"])
    assert most.channels["telegram"].bot_token == Sensitive("1:very-secret")
    assert most.channels["slack"].bot_token is None
    assert "very-secret" not in repr(most)


@pytest.mark.parametrize("body", [{"name": ""}, {"name": "<b>"}])
def test_a_name_is_required(body: dict) -> None:
    with pytest.raises(InvalidAgentName):
        CreateAgentRequest.model_validate(body).to_create_agent()
    with pytest.raises(ValidationError, match="Field required"):
        CreateAgentRequest.model_validate({})


@pytest.mark.parametrize(
    "body",
    [
        {"vibe": "x" * 201},
        {"emoji": "🦉" * 33},
        {"engine": "x" * 33},
        {"model": ""},
        {"description": "a\0b"},
        {"skillCids": [""]},
        {"secretIds": ["x" * 257]},
        {"channels": {"telegram": {"botToken": 7}}},
        {"channels": {"telegram": "1:x"}},
    ],
)
def test_invalid_create_requests_are_rejected(body: dict) -> None:
    with pytest.raises(ValidationError):
        CreateAgentRequest.model_validate({"name": "Ada", **body})


@pytest.mark.parametrize(
    ("body", "version"), [({}, None), ({"version": "2"}, "2"), ({"agentVersion": "3"}, "3"), ({"version": ""}, "")]
)
def test_both_names_of_the_version_are_accepted(body: dict, version: str | None) -> None:
    assert RestartAgentRequest.model_validate(body).requested_version == version


def test_a_record_as_clients_read_it() -> None:
    shown = schemas.agent_record(AGENT, "http://a1.agents.localhost").model_dump(mode="json", by_alias=True)
    assert shown == {
        "agentId": "a1",
        "userId": "t1",
        "name": "Ada",
        "description": None,
        "vibe": None,
        "emoji": None,
        "model": None,
        "engine": "fake",
        "agentVersion": "1.0.0",
        "status": "failed",
        "statusReason": "because",
        "lastUsedAt": None,
        "url": "http://a1.agents.localhost",
        "createdAt": "2026-01-02T03:04:05.000000Z",
        "updatedAt": "2026-01-02T03:04:05.000000Z",
        "gatewayToken": None,
        "lifecycleJson": None,
    }
    assert schemas.agent_record(AGENT, "", Sensitive("rst_x")).gateway_token == "rst_x"


def test_a_token_has_both_names() -> None:
    assert schemas.token_record(Sensitive("rst_x")).model_dump(by_alias=True) == {
        "token": "rst_x",
        "gatewayToken": "rst_x",
    }
