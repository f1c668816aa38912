"""OpenClaw's channels: as its configuration has them, and on a real gateway that is given others while it runs."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from roost.core.sensitive import Sensitive
from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.abilities.channels import ERROR_LIMIT, ChannelSetup, ChannelState
from roost.drivers.engine.contract import EngineFailed
from roost.drivers.engine.openclaw import channels
from roost.drivers.engine.openclaw.channels import OpenClawChannels
from tests.conformance.engines import OPENCLAW, TOKEN, place

BOT, APP = "123456789:AAExampleTokenOfThirtyFiveLetters00", "xapp-1-A1-2-abcdefghijklmnop"
TELEGRAM = ChannelSetup(Sensitive(BOT))
SLACK = ChannelSetup(Sensitive("xoxb-1-2-abc"), Sensitive(APP), "pairing", ("U1",))
DISCORD = ChannelSetup(Sensitive("MTIzNDU2Nzg5MDEyMzQ1Njc4.abcdef.ghijklmnop"), allow_from=("42",))
WHATSAPP = ChannelSetup(Sensitive("unused"), allow_from=("4912345678",))
ALL = {"telegram": TELEGRAM, "slack": SLACK, "discord": DISCORD, "whatsapp": WHATSAPP}


def test_each_channel_is_said_in_full() -> None:
    assert channels.section(ALL, {}) == {
        "telegram": {"enabled": True, "botToken": BOT, "dmPolicy": "open", "allowFrom": ["*"]},
        "slack": {
            "enabled": True,
            "mode": "socket",
            "botToken": "xoxb-1-2-abc",
            "appToken": APP,
            "dmPolicy": "pairing",
            "allowFrom": ["U1"],
        },
        "discord": {
            "enabled": True,
            "token": "MTIzNDU2Nzg5MDEyMzQ1Njc4.abcdef.ghijklmnop",
            "dmPolicy": "allowlist",
            "allowFrom": ["42"],
        },
        "whatsapp": {"enabled": True, "dmPolicy": "allowlist", "allowFrom": ["+4912345678"]},
    }


def test_what_is_the_users_stays_and_what_is_ours_goes() -> None:
    users: dict[str, Any] = {
        "telegram": {"botToken": "old", "groups": {"*": {"requireMention": True}}, "tokenFile": "/x", "enabled": True},
        "slack": {"botToken": "old", "appToken": "old", "allowFrom": ["*"], "dmPolicy": "open"},
        "discord": "garbage",
        "matrix": {"homeserver": "https://x"},
    }
    made = channels.section({"telegram": TELEGRAM}, users)
    assert made["telegram"] == {
        **channels.section({"telegram": TELEGRAM}, {})["telegram"],
        "groups": users["telegram"]["groups"],
    }
    assert made["slack"] == made["discord"] == {"enabled": False}
    assert made["matrix"] == users["matrix"]
    assert "whatsapp" not in made
    assert channels.section({}, {}) == {}


def test_a_patch_takes_away_what_is_not_wanted_any_more() -> None:
    present = channels.section({"telegram": TELEGRAM, "slack": SLACK}, {"telegram": {"groups": {}}})
    change, lists = channels.patch({"telegram": ChannelSetup(Sensitive("new"), allow_from=("7",))}, present)
    assert change == {
        "channels": {
            "telegram": {"enabled": True, "botToken": "new", "dmPolicy": "allowlist", "allowFrom": ["7"]},
            "slack": {"enabled": False, "botToken": None, "appToken": None, "dmPolicy": None, "allowFrom": None},
        }
    }
    assert lists == ["channels.telegram.allowFrom", "channels.slack.allowFrom"]
    assert channels.patch({}, {}) == ({"channels": {}}, [])


def test_states_are_read_whatever_is_told() -> None:
    told = {
        "channels": {
            "telegram": {"configured": True, "running": True, "lastError": "x" * 9000},
            "slack": {"configured": False, "running": True},
            "whatsapp": {"configured": True, "linked": False, "running": False},
            "discord": {"configured": True},
            "matrix": {"configured": True},
        },
        "channelAccounts": {
            "discord": [{"enabled": False}],
            "telegram": [{"connected": False}],
            "whatsapp": "garbage",
            "slack": [],
        },
    }
    assert channels.states(told) == {
        "telegram": ChannelState(running=True, connected=False, last_error="x" * ERROR_LIMIT),
        "whatsapp": ChannelState(running=False, linked=False),
    }
    for garbage in (None, [], {"channels": []}, {"channels": {"telegram": 7}, "channelAccounts": 7}):
        assert channels.states(garbage) == {}


@pytest.mark.engine
@pytest.mark.container
async def test_a_running_gateway_takes_other_channels_and_keeps_them(tmp_path: Path) -> None:
    async with place(OPENCLAW, tmp_path / "box") as home:
        inside = AgentContext(home.warden, TOKEN, home.engine.default_version)
        ability = home.engine.channels
        assert isinstance(ability, OpenClawChannels)
        await home.start()
        with pytest.raises(EngineFailed):
            await ability.status(AgentContext(home.warden, Sensitive("wrong"), inside.version))
        listening = await _logged(home.warden, "http server listening")
        assert "2 plugins" in listening, "an agent without channels pays for none"
        assert await ability.status(inside) == {}

        await ability.apply(inside, ALL)
        told = await ability.status(inside)
        assert told.keys() == ALL.keys()
        assert told["telegram"].running
        assert told["whatsapp"].linked is False
        assert not any(state.connected for state in told.values())

        await ability.apply(inside, {"telegram": ChannelSetup(Sensitive(BOT), allow_from=("7",))})
        assert (await ability.status(inside)).keys() == {"telegram"}
        kept = (await home.warden.read(".openclaw/openclaw.json", root="home", limit=1 << 20)).decode()
        assert json.loads(kept)["channels"]["telegram"]["allowFrom"] == ["7"]
        assert APP not in kept

        begin = time.monotonic()
        await home.warden.stop("gateway")
        assert time.monotonic() - begin < 15, "platforms that do not answer must not hold the stop up"


async def _logged(warden: Any, words: str) -> str:
    return next(line.text for line in await warden.logs(source="gateway", limit=400) if words in line.text)
