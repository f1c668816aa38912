"""Responses about channels never contain a token."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from roost.agents.setup.channels import schemas
from roost.agents.setup.channels.model import (
    ALLOW_FROM_LIMIT,
    ID_LIMIT,
    TOKEN_LIMIT,
    Channel,
    ChannelChange,
    ChannelOverview,
    ChannelRequest,
    ChannelStatus,
)
from roost.agents.setup.channels.schemas import ChannelConfiguration
from roost.core.sensitive import Sensitive
from roost.drivers.engine.abilities.channels import CHANNELS, SLACK, TELEGRAM, WHATSAPP, ChannelState, PairingRequest

BOT, APP = Sensitive("123456789:very-secret-token-of-a-bot"), Sensitive("xapp-1-very-secret-token")
CHANNEL = Channel(TELEGRAM, BOT, None, "open", ("1", "2"), True, "my_bot")
WRITTEN = datetime(2026, 1, 2, tzinfo=UTC)
STATE = ChannelState(True, True, None, "it broke", WRITTEN, (PairingRequest("4711", "Bea", None, "r1"),))


def channel_list_json(*shown: ChannelStatus) -> dict[str, object]:
    overview = ChannelOverview({one.channel.name: one for one in shown}, "1.2.3")
    return schemas.channel_list(overview).model_dump(mode="json", by_alias=True)


def test_unconfigured_channels_are_null() -> None:
    assert channel_list_json() == {**dict.fromkeys(CHANNELS), "version": "1.2.3"}


def test_a_channel_with_what_its_gateway_says() -> None:
    assert channel_list_json(ChannelStatus(CHANNEL, STATE))["telegram"] == {
        "configured": True,
        "enabled": True,
        "dmPolicy": "open",
        "allowFrom": ["1", "2"],
        "botTokenSet": True,
        "botTokenHint": "-bot",
        "appTokenSet": False,
        "appTokenHint": None,
        "botUsername": "my_bot",
        "unchecked": None,
        "uncheckedAt": None,
        "running": True,
        "connected": True,
        "lastError": "it broke",
        "lastMessageAt": "2026-01-02T00:00:00.000000Z",
        "pairingRequests": [{"requestId": "r1", "senderId": "4711", "senderName": "Bea", "requestedAt": None}],
    }


def test_a_gateway_that_says_nothing() -> None:
    found = channel_list_json(ChannelStatus(replace(CHANNEL, bot_name=None), None))["telegram"]
    assert isinstance(found, dict)
    assert [found[name] for name in ("running", "connected", "lastError", "botUsername")] == [None] * 4


def test_slack_has_two_tokens() -> None:
    found = channel_list_json(ChannelStatus(replace(CHANNEL, name=SLACK, app_token=APP), None))["slack"]
    assert isinstance(found, dict)
    assert (found["appTokenSet"], found["appTokenHint"]) == (True, "oken")


@pytest.mark.parametrize(("state", "linked"), [(None, None), (STATE, None), (replace(STATE, linked=False), False)])
def test_whatsapp_is_linked_or_not(state: ChannelState | None, linked: bool | None) -> None:
    found = channel_list_json(ChannelStatus(replace(CHANNEL, name=WHATSAPP), state))["whatsapp"]
    assert isinstance(found, dict)
    assert found["linked"] is linked
    other = channel_list_json(ChannelStatus(CHANNEL, state))["telegram"]
    assert isinstance(other, dict)
    assert "linked" not in other


@pytest.mark.parametrize("name", CHANNELS)
def test_no_token_is_told(name: str) -> None:
    text = str(channel_list_json(ChannelStatus(replace(CHANNEL, name=name, app_token=APP), STATE)))
    assert "very-secret" not in text


def test_a_short_token_has_no_hint() -> None:
    found = channel_list_json(ChannelStatus(replace(CHANNEL, bot_token=Sensitive("short")), None))["telegram"]
    assert isinstance(found, dict)
    assert found["botTokenHint"] is None


def test_record_of_a_change_tells_its_result() -> None:
    assert schemas.change_record(ChannelChange("Saved")).model_dump(by_alias=True) == {
        "success": True,
        "message": "Saved",
        "botUsername": None,
        "warning": None,
    }
    assert schemas.change_record(ChannelChange("Saved", "my_bot", "Mind this")).warning == "Mind this"


def order(**body: Any) -> ChannelRequest:
    return ChannelConfiguration.model_validate(body).to_request()


@pytest.mark.parametrize(
    "body", [{}, {"unknown": 1}, {"botToken": None, "allowFrom": None}, {"botToken": "", "appToken": ""}]
)
def test_empty_fields_change_nothing(body: dict[str, Any]) -> None:
    assert order(**body) == ChannelRequest()


def test_all_that_may_be_said() -> None:
    body = {"botToken": "b", "appToken": "a", "dmPolicy": "pairing", "allowFrom": ["1", "2"], "enabled": False}
    assert order(**body) == ChannelRequest(Sensitive("b"), Sensitive("a"), "pairing", ["1", "2"], enabled=False)
    assert order(allowFrom=[]).allow_from == []


def test_longest_allowed_values_are_accepted() -> None:
    made = order(botToken="t" * TOKEN_LIMIT, allowFrom=["i" * ID_LIMIT] * ALLOW_FROM_LIMIT)
    assert made.allow_from is not None
    assert len(made.allow_from) == ALLOW_FROM_LIMIT


@pytest.mark.parametrize(
    "body",
    [
        {"botToken": "t" * (TOKEN_LIMIT + 1)},
        {"appToken": "t" * (TOKEN_LIMIT + 1)},
        {"botToken": "a\0"},
        {"botToken": 7},
        {"dmPolicy": "closed"},
        {"dmPolicy": ""},
        {"allowFrom": "1"},
        {"allowFrom": [""]},
        {"allowFrom": ["i" * (ID_LIMIT + 1)]},
        {"allowFrom": ["i"] * (ALLOW_FROM_LIMIT + 1)},
        {"allowFrom": [None]},
        {"enabled": "maybe"},
    ],
)
def test_malformed_channel_requests_are_refused(body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        order(**body)
