"""OpenClaw's channels: their configuration, and changes in a real running gateway."""

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from roost.core.sensitive import Sensitive
from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.abilities.channels import (
    ERROR_LIMIT,
    MAX_PAIRING_REQUESTS,
    NAME_LIMIT,
    ChannelSetup,
    ChannelState,
    PairingRequest,
    PairingRequestNotFound,
)
from roost.drivers.engine.contract import EngineFailed
from roost.drivers.engine.openclaw import channels
from roost.drivers.engine.openclaw.channels import OpenClawChannels, parse_requests
from tests.conformance.engines import OPENCLAW, TOKEN, open_engine_env

BOT, APP = "123456789:AAExampleTokenOfThirtyFiveLetters00", "xapp-1-A1-2-abcdefghijklmnop"
TELEGRAM = ChannelSetup(Sensitive(BOT))
SLACK = ChannelSetup(Sensitive("xoxb-1-2-abc"), Sensitive(APP), "pairing", ("U1",))
DISCORD = ChannelSetup(Sensitive("MTIzNDU2Nzg5MDEyMzQ1Njc4.abcdef.ghijklmnop"), allow_from=("42",))
WHATSAPP = ChannelSetup(Sensitive("unused"), allow_from=("4912345678",))
ALL = {"telegram": TELEGRAM, "slack": SLACK, "discord": DISCORD, "whatsapp": WHATSAPP}


def test_each_channel_has_all_platform_keys() -> None:
    assert channels.merge_channels(ALL, {}) == {
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


def test_the_users_keys_stay_and_the_platforms_are_replaced() -> None:
    users: dict[str, Any] = {
        "telegram": {"botToken": "old", "groups": {"*": {"requireMention": True}}, "tokenFile": "/x", "enabled": True},
        "slack": {"botToken": "old", "appToken": "old", "allowFrom": ["*"], "dmPolicy": "open"},
        "discord": "garbage",
        "matrix": {"homeserver": "https://x"},
    }
    merged = channels.merge_channels({"telegram": TELEGRAM}, users)
    assert merged["telegram"] == {
        **channels.merge_channels({"telegram": TELEGRAM}, {})["telegram"],
        "groups": users["telegram"]["groups"],
    }
    assert merged["slack"] == merged["discord"] == {"enabled": False}
    assert merged["matrix"] == users["matrix"]
    assert "whatsapp" not in merged
    assert channels.merge_channels({}, {}) == {}


def test_a_patch_removes_old_keys() -> None:
    present = channels.merge_channels({"telegram": TELEGRAM, "slack": SLACK}, {"telegram": {"groups": {}}})
    change, lists = channels.build_patch({"telegram": ChannelSetup(Sensitive("new"), allow_from=("7",))}, present)
    assert change == {
        "channels": {
            "telegram": {"enabled": True, "botToken": "new", "dmPolicy": "allowlist", "allowFrom": ["7"]},
            "slack": {"enabled": False, "botToken": None, "appToken": None, "dmPolicy": None, "allowFrom": None},
        }
    }
    assert lists == ["channels.telegram.allowFrom", "channels.slack.allowFrom"]
    assert channels.build_patch({}, {}) == ({"channels": {}}, [])


def test_states_are_parsed_and_garbage_is_ignored() -> None:
    found = {
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
    assert channels.parse_states(found) == {
        "telegram": ChannelState(running=True, connected=False, last_error="x" * ERROR_LIMIT),
        "whatsapp": ChannelState(running=False, linked=False),
    }
    for garbage in (None, [], {"channels": []}, {"channels": {"telegram": 7}, "channelAccounts": 7}):
        assert channels.parse_states(garbage) == {}


def test_the_last_message_is_told() -> None:
    account = {
        "channels": {"telegram": {"configured": True}},
        "channelAccounts": {"telegram": [{"lastInboundAt": 1000}]},
    }
    assert channels.parse_states(account)["telegram"].last_message_at == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    account["channelAccounts"]["telegram"] = [{"lastInboundAt": "soon"}]
    assert channels.parse_states(account)["telegram"].last_message_at is None


@pytest.mark.engine
@pytest.mark.container
async def test_a_running_gateway_accepts_other_channels_and_keeps_them(tmp_path: Path) -> None:
    async with open_engine_env(OPENCLAW, tmp_path / "data") as env:
        agent = AgentContext(env.warden, TOKEN, env.engine.default_version)
        ability = env.engine.channels
        assert isinstance(ability, OpenClawChannels)
        await env.start()
        with pytest.raises(EngineFailed):
            await ability.status(AgentContext(env.warden, Sensitive("wrong"), agent.version))
        listening = await _logged(env.warden, "http server listening")
        assert "2 plugins" in listening, "an agent without channels loads no plugins for them"
        assert await ability.status(agent) == {}

        await ability.apply(agent, ALL)
        states = await ability.status(agent)
        assert states.keys() == ALL.keys()
        assert states["telegram"].running
        assert states["slack"].requests == ()
        with pytest.raises(PairingRequestNotFound):
            await ability.approve_request(agent, "slack", "unknown")
        assert states["whatsapp"].linked is False
        assert not any(state.connected for state in states.values())

        await ability.apply(agent, {"telegram": ChannelSetup(Sensitive(BOT), allow_from=("7",))})
        assert (await ability.status(agent)).keys() == {"telegram"}
        kept = (await env.warden.read(".openclaw/openclaw.json", root="home", limit=1 << 20)).decode()
        assert json.loads(kept)["channels"]["telegram"]["allowFrom"] == ["7"]
        assert APP not in kept

        begin = time.monotonic()
        await env.warden.stop("gateway")
        assert time.monotonic() - begin < 15, "platforms that do not answer must not delay the stop"


async def _logged(warden: Any, words: str) -> str:
    return next(line.text for line in await warden.logs(source="gateway", limit=400) if words in line.text)


def test_requests_are_parsed_and_garbage_is_ignored() -> None:
    row = {
        "requestId": "r1",
        "channel": "telegram",
        "accountId": "default",
        "senderId": "4711",
        "metadata": {"username": "ada", "firstName": "Ada\x1b[31m", "lastName": "L" * 200},
        "createdAt": "2026-11-25T22:00:00.000Z",
    }
    bare = {"requestId": "r2", "channel": "slack", "senderId": "U1", "createdAt": "yesterday"}
    found = parse_requests({"requests": [row, bare, 7, {}, {"channel": "slack", "senderId": "U2"}]})
    at = datetime(2026, 11, 25, 22, tzinfo=UTC)
    assert found == {
        "telegram": (PairingRequest("4711", f"Ada {'L' * 200}"[:NAME_LIMIT], at, "r1"),),
        "slack": (PairingRequest("U1", None, None, "r2"),),
    }
    many = {"requests": [{**bare, "requestId": str(number)} for number in range(50)]}
    assert len(parse_requests(many)["slack"]) == MAX_PAIRING_REQUESTS
    for garbage in (None, [], {"requests": 7}):
        assert parse_requests(garbage) == {}
