"""The agent's own view of itself, and the fields that it may change."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from roost.agents.lifecycle.self_service import api
from roost.agents.registry.errors import InvalidAgentName
from roost.agents.registry.model import (
    DESCRIPTION_LIMIT,
    EMOJI_LIMIT,
    MODEL_LIMIT,
    VIBE_LIMIT,
    Agent,
    AgentProfile,
    AgentState,
)
from roost.core.sensitive import Sensitive
from roost.identity.platform_tokens import IssuedPlatformToken

AT = datetime(2026, 11, 21, 10, 29, 47, 355000, tzinfo=UTC)
OLD = AgentProfile("Ada", "counts", "calm", "\U0001f989")
AGENT = Agent("a", "t", OLD, "fake", "1.0.0", AgentState.FAILED, "because", False, "host", AT, AT)


def changed(**body: Any) -> AgentProfile:
    return api.AgentMetadataRequest.model_validate(body).apply(OLD)


@pytest.mark.parametrize(
    ("body", "profile"),
    [
        ({}, OLD),
        ({"unknown": 1}, OLD),
        ({"name": " Bea "}, AgentProfile("Bea", "counts", "calm", "\U0001f989")),
        ({"description": None}, AgentProfile("Ada", None, "calm", "\U0001f989")),
        ({"vibe": None, "emoji": None}, AgentProfile("Ada", "counts")),
        ({"description": "", "vibe": "wild"}, AgentProfile("Ada", "", "wild", "\U0001f989")),
    ],
)
def test_fields_that_are_not_sent_stay(body: dict[str, Any], profile: AgentProfile) -> None:
    assert changed(**body) == profile


@pytest.mark.parametrize("name", [None, "", " ", "a<b", "n" * 101, "a\0"])
def test_there_is_no_agent_without_a_name(name: str | None) -> None:
    with pytest.raises(InvalidAgentName):
        changed(name=name)


@pytest.mark.parametrize(
    "body",
    [
        {"description": "d" * (DESCRIPTION_LIMIT + 1)},
        {"vibe": "v" * (VIBE_LIMIT + 1)},
        {"emoji": "e" * (EMOJI_LIMIT + 1)},
        {"description": "a\0"},
        {"vibe": 7},
        {"model": "m" * (MODEL_LIMIT + 1)},
    ],
)
def test_bodies_that_are_refused(body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        changed(**body)


def test_a_token_says_how_long_it_counts() -> None:
    issued = IssuedPlatformToken(Sensitive("token"), AT + timedelta(seconds=90.9))
    told = api.platform_token_record(issued, AT).model_dump(mode="json", by_alias=True)
    assert told == {"token": "token", "expiresAt": "2026-11-21T10:31:18.255000Z", "expiresIn": 90}


def test_how_it_is() -> None:
    assert api.agent_status_record(AGENT, "not_running", None).model_dump(mode="json", by_alias=True) == {
        "agentId": "a",
        "status": "failed",
        "statusReason": "because",
        "processStatus": "not_running",
        "processId": None,
        "engine": "fake",
        "agentVersion": "1.0.0",
    }
