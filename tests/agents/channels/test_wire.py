"""How channels are told: never with their tokens."""

from dataclasses import replace

import pytest

from roost.agents.channels import wire
from roost.agents.channels.model import Channel, Done, Overview, Shown
from roost.core.sensitive import Sensitive
from roost.drivers.engine.abilities.channels import CHANNELS, SLACK, TELEGRAM, WHATSAPP, ChannelState

BOT, APP = Sensitive("123456789:very-secret-token-of-a-bot"), Sensitive("xapp-1-very-secret-token")
CHANNEL = Channel(TELEGRAM, BOT, None, "open", ("1", "2"), True, "my_bot")
STATE = ChannelState(True, True, None, "it broke")


def told(*shown: Shown) -> dict[str, object]:
    overview = Overview({one.channel.name: one for one in shown}, "1.2.3")
    return wire.listed(overview).model_dump(mode="json", by_alias=True)


def test_what_is_not_configured_is_null() -> None:
    assert told() == {**dict.fromkeys(CHANNELS), "version": "1.2.3"}


def test_a_channel_with_what_its_gateway_says() -> None:
    assert told(Shown(CHANNEL, STATE))["telegram"] == {
        "configured": True,
        "enabled": True,
        "dmPolicy": "open",
        "allowFrom": ["1", "2"],
        "botTokenSet": True,
        "botTokenHint": "-bot",
        "appTokenSet": False,
        "appTokenHint": None,
        "botUsername": "my_bot",
        "running": True,
        "connected": True,
        "lastError": "it broke",
    }


def test_a_gateway_that_says_nothing() -> None:
    found = told(Shown(replace(CHANNEL, bot_name=None), None))["telegram"]
    assert isinstance(found, dict)
    assert [found[name] for name in ("running", "connected", "lastError", "botUsername")] == [None] * 4


def test_slack_has_two_tokens() -> None:
    found = told(Shown(replace(CHANNEL, name=SLACK, app_token=APP), None))["slack"]
    assert isinstance(found, dict)
    assert (found["appTokenSet"], found["appTokenHint"]) == (True, "oken")


@pytest.mark.parametrize(("state", "linked"), [(None, None), (STATE, None), (replace(STATE, linked=False), False)])
def test_whatsapp_is_linked_or_not(state: ChannelState | None, linked: bool | None) -> None:
    found = told(Shown(replace(CHANNEL, name=WHATSAPP), state))["whatsapp"]
    assert isinstance(found, dict)
    assert found["linked"] is linked
    assert "linked" not in (told(Shown(CHANNEL, state))["telegram"] or {})


@pytest.mark.parametrize("name", CHANNELS)
def test_no_token_is_told(name: str) -> None:
    text = str(told(Shown(replace(CHANNEL, name=name, app_token=APP), STATE)))
    assert "very-secret" not in text


def test_a_short_token_has_no_hint() -> None:
    found = told(Shown(replace(CHANNEL, bot_token=Sensitive("short")), None))["telegram"]
    assert isinstance(found, dict)
    assert found["botTokenHint"] is None


def test_what_was_done() -> None:
    assert wire.done(Done("Saved")).model_dump(by_alias=True) == {
        "success": True,
        "message": "Saved",
        "botUsername": None,
        "warning": None,
    }
    assert wire.done(Done("Saved", "my_bot", "Mind this")).warning == "Mind this"
