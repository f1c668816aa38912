"""Channels over HTTP: shapes, statuses, exact messages, masked tokens (contract: Channels; cases H4, H5, H8)."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from roost.drivers.engine.fake.driver import FakeEngine
from roost.identity.caller import Plan
from tests.drivers.chat_platform.stand_in import (
    DISCORD_BOT,
    SLACK_APP,
    SLACK_BOT,
    TELEGRAM_BOT,
    FakeTokenApi,
    platforms,
)
from tests.support.server import RunningServer, running

REFUSED_BOT = "123456789:refused-by-the-fake-gateway-0000000"
UNWELL_BOT = "123456789:unwell-in-the-fake-gateway-00000000"
TOKENS = (TELEGRAM_BOT, SLACK_BOT, SLACK_APP, DISCORD_BOT, REFUSED_BOT, UNWELL_BOT)


@pytest.fixture(scope="module")
def fake_platforms() -> Iterator[FakeTokenApi]:
    with platforms() as told:
        told.known |= set(TOKENS)
        yield told


@pytest.fixture(scope="module", params=["hot", "restarted"])
async def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, fake_platforms: FakeTokenApi
) -> AsyncIterator[RunningServer]:
    """Run two engines: one takes channels while it runs, the other has to be restarted."""
    apis: dict[str, Any] = {f"ROOST_{name}_API": fake_platforms.url for name in ("TELEGRAM", "SLACK", "DISCORD")}
    engine = FakeEngine(hot_channels=request.param == "hot")
    async with running(tmp_path_factory.mktemp("c") / "data", engines=[engine], **apis) as server:
        yield server


@pytest.fixture
async def agent(server: RunningServer) -> AsyncIterator[httpx.AsyncClient]:
    """Return a client of a new agent's own address."""
    api = server.client(server.key())
    made = (await api.post("/v0/agents", json={"name": "a"})).json()["agent"]
    yield server.agent_client(made)
    await api.delete(f"/v0/agents/{made['agentId']}")


@pytest.fixture(scope="module")
async def bare(server: RunningServer) -> httpx.AsyncClient:
    """Return a client of an agent that never gets a channel."""
    api = server.client(server.key("bare"))
    return server.agent_client((await api.post("/v0/agents", json={"name": "a"})).json()["agent"])


async def channels(agent: httpx.AsyncClient) -> dict:
    answer = await agent.get("/v0/channels")
    assert answer.status_code == 200, answer.text
    assert not any(token in answer.text for token in TOKENS)
    return answer.json()


async def gateway(agent: httpx.AsyncClient) -> dict:
    """Return the configuration and errors that the gateway itself tells."""
    found = (await agent.get("/channels")).json()["channels"]
    return {name: {key: row[key] for key in ("dm_policy", "allow_from", "error")} for name, row in found.items()}


async def test_a_new_agent_has_none(bare: httpx.AsyncClient) -> None:
    none = dict.fromkeys(("telegram", "slack", "discord", "whatsapp"))
    assert await channels(bare) == {**none, "version": "1.0.0"}


async def test_telegram_from_nothing_to_removed(agent: httpx.AsyncClient) -> None:
    answer = await agent.post("/v0/channels/telegram", json={"botToken": TELEGRAM_BOT})
    told = {"success": True, "message": "Telegram is configured", "botUsername": "weather_bot", "warning": None}
    assert (answer.status_code, answer.json()) == (200, told)
    assert (await channels(agent))["telegram"] == {
        "configured": True,
        "enabled": True,
        "dmPolicy": "open",
        "allowFrom": [],
        "botTokenSet": True,
        "botTokenHint": TELEGRAM_BOT[-4:],
        "appTokenSet": False,
        "appTokenHint": None,
        "botUsername": "weather_bot",
        "unchecked": None,
        "uncheckedAt": None,
        "running": True,
        "connected": True,
        "lastError": None,
        "lastMessageAt": None,
        "pairingRequests": [],
    }
    assert await gateway(agent) == {"telegram": {"dm_policy": "open", "allow_from": [], "error": None}}
    answer = await agent.delete("/v0/channels/telegram")
    assert (answer.status_code, answer.json()["message"]) == (200, "Telegram is removed")
    assert (await channels(agent))["telegram"] is None
    assert await gateway(agent) == {}
    assert (await agent.delete("/v0/channels/telegram")).json()["success"] is True


async def test_slack_has_two_tokens_and_discord_one(agent: httpx.AsyncClient) -> None:
    slack = {"botToken": SLACK_BOT, "appToken": SLACK_APP, "dmPolicy": "pairing", "allowFrom": ["U012AB", "U012AB"]}
    assert (await agent.post("/v0/channels/slack", json=slack)).json()["botUsername"] == "weather"
    assert (await agent.post("/v0/channels/discord", json={"botToken": DISCORD_BOT})).status_code == 200
    shown = await channels(agent)
    assert (shown["slack"]["appTokenSet"], shown["slack"]["appTokenHint"]) == (True, SLACK_APP[-4:])
    assert (shown["slack"]["dmPolicy"], shown["slack"]["allowFrom"]) == ("pairing", ["U012AB"])
    assert set(await gateway(agent)) == {"slack", "discord"}


async def test_unsent_channel_fields_stay(agent: httpx.AsyncClient, fake_platforms: FakeTokenApi) -> None:
    first = {"botToken": TELEGRAM_BOT, "dmPolicy": "pairing", "allowFrom": ["12"]}
    await agent.post("/v0/channels/telegram", json=first)
    asked = len(fake_platforms.asked)
    answer = await agent.post("/v0/channels/telegram", json={"botToken": "  ", "allowFrom": ["12", "13"]})
    assert (answer.status_code, answer.json()["botUsername"]) == (200, "weather_bot")
    assert len(fake_platforms.asked) == asked  # a checked token is not checked again
    assert (await gateway(agent))["telegram"] == {"dm_policy": "pairing", "allow_from": ["12", "13"], "error": None}
    await agent.post("/v0/channels/telegram", json={"enabled": False})
    assert await gateway(agent) == {}
    shown = (await channels(agent))["telegram"]
    assert (shown["enabled"], shown["botTokenSet"], shown["running"]) == (False, True, None)


@pytest.mark.parametrize(
    ("channel", "body", "message"),
    [
        ("sms", {"botToken": TELEGRAM_BOT}, "Unsupported channel"),
        ("whatsapp", {"botToken": "EAAx"}, "Unsupported channel"),
        ("Telegram", {"botToken": TELEGRAM_BOT}, "Unsupported channel"),
        ("telegram", {}, "botToken is required (string)"),
        ("telegram", {"botToken": ""}, "botToken is required (string)"),
        ("slack", {"appToken": SLACK_APP}, "botToken is required (string)"),
        ("slack", {"botToken": SLACK_BOT}, "appToken is required (string)"),
        ("telegram", {"botToken": "12:ok"}, "This is not a bot token of Telegram"),
        ("telegram", {"botToken": TELEGRAM_BOT + "\n/x"}, "This is not a bot token of Telegram"),
        ("slack", {"botToken": SLACK_APP, "appToken": SLACK_APP}, "This is not a bot token of Slack"),
        ("slack", {"botToken": SLACK_BOT, "appToken": SLACK_BOT}, "This is not an app-level token of Slack"),
        ("discord", {"botToken": "one.two"}, "This is not a bot token of Discord"),
        ("telegram", {"botToken": TELEGRAM_BOT, "allowFrom": ["@ada"]}, "allowFrom contains an invalid"),
        (
            "telegram",
            {"botToken": TELEGRAM_BOT, "allowFrom": ["*"], "dmPolicy": "pairing"},
            "allowFrom contains an invalid",
        ),
        ("telegram", {"botToken": TELEGRAM_BOT, "allowFrom": ["1"] * 501}, ""),
        ("telegram", {"botToken": TELEGRAM_BOT, "allowFrom": ["1" * 65]}, ""),
        ("telegram", {"botToken": TELEGRAM_BOT, "dmPolicy": "closed"}, ""),
        ("telegram", {"botToken": 7}, ""),
        ("telegram", {"botToken": "1" * 2000}, ""),
    ],
)
async def test_a_bad_order_is_400(bare: httpx.AsyncClient, channel: str, body: dict, message: str) -> None:
    answer = await bare.post(f"/v0/channels/{channel}", json=body)
    assert answer.status_code == 400, answer.text
    assert list(answer.json()) == ["error"]
    assert answer.json()["error"].startswith(message)
    assert await gateway(bare) == {}


async def test_an_unknown_channel_cannot_be_removed(bare: httpx.AsyncClient) -> None:
    answer = await bare.delete("/v0/channels/sms")
    assert (answer.status_code, answer.json()) == (400, {"error": "Unsupported channel"})


async def test_a_token_that_the_platform_does_not_know_is_not_kept(agent: httpx.AsyncClient) -> None:
    stranger = "987654321:AAThisTokenIsNotKnownToTelegram00000"
    answer = await agent.post("/v0/channels/telegram", json={"botToken": stranger})
    assert answer.status_code == 400
    assert answer.json()["error"].startswith("Telegram rejected the bot token: Unauthorized")
    assert stranger not in answer.text
    assert (await channels(agent))["telegram"] is None


async def test_a_platform_in_trouble_is_a_warning(agent: httpx.AsyncClient, fake_platforms: FakeTokenApi) -> None:
    fake_platforms.trouble = 503
    try:
        answer = await agent.post("/v0/channels/telegram", json={"botToken": TELEGRAM_BOT})
    finally:
        fake_platforms.trouble = None
    assert (answer.status_code, answer.json()["botUsername"]) == (200, None)
    assert "was not checked" in answer.json()["warning"]
    assert set(await gateway(agent)) == {"telegram"}


async def test_a_request_without_settings_checks_the_token_again(
    agent: httpx.AsyncClient, fake_platforms: FakeTokenApi
) -> None:
    fake_platforms.trouble = 503
    try:
        await agent.post("/v0/channels/telegram", json={"botToken": TELEGRAM_BOT})
        again = await agent.post("/v0/channels/telegram", json={})
        assert "it answered 503" in again.json()["warning"]
        assert (await channels(agent))["telegram"]["unchecked"] is None  # the gateway is connected with it
        fake_platforms.trouble = None
        fake_platforms.known.discard(TELEGRAM_BOT)
        rejected = await agent.post("/v0/channels/telegram", json={})
        assert (rejected.status_code, rejected.json()["error"][:31]) == (400, "Telegram rejected the bot token")
        changed = await agent.post("/v0/channels/telegram", json={"enabled": False})  # asks no platform
        shown = (await channels(agent))["telegram"]
        assert (changed.status_code, shown["enabled"], TELEGRAM_BOT in str(shown)) == (200, False, False)
        assert (shown["unchecked"], shown["uncheckedAt"] is None) == (again.json()["warning"], False)
    finally:
        fake_platforms.trouble = None
        fake_platforms.known.add(TELEGRAM_BOT)
    assert (await agent.post("/v0/channels/telegram", json={})).json()["botUsername"] == "weather_bot"
    found = (await channels(agent))["telegram"]
    assert (found["botUsername"], found["unchecked"], found["uncheckedAt"]) == ("weather_bot", None, None)


async def test_configuration_refused_by_the_gateway_is_not_kept(agent: httpx.AsyncClient) -> None:
    await agent.post("/v0/channels/telegram", json={"botToken": TELEGRAM_BOT, "allowFrom": ["12"]})
    answer = await agent.post("/v0/channels/telegram", json={"botToken": REFUSED_BOT, "allowFrom": []})
    assert (answer.status_code, answer.json()) == (500, {"error": "Configuration failed"})
    shown = (await channels(agent))["telegram"]
    assert (shown["botTokenHint"], shown["allowFrom"], shown["running"]) == (TELEGRAM_BOT[-4:], ["12"], True)
    assert (await gateway(agent))["telegram"]["allow_from"] == ["12"]


async def test_a_channel_that_the_gateway_keeps_is_not_removed(tmp_path: Path, fake_platforms: FakeTokenApi) -> None:
    async with running(tmp_path / "data", ROOST_TELEGRAM_API=fake_platforms.url) as server:
        made = (await server.client(server.key()).post("/v0/agents", json={"name": "a"})).json()["agent"]
        agent = server.agent_client(made)
        assert (await agent.post("/v0/channels/telegram", json={"botToken": TELEGRAM_BOT})).status_code == 200
        await server.roost.agents.registry.runtimes.get_warden(made["agentId"]).stop("gateway")
        answer = await agent.delete("/v0/channels/telegram")
        assert (answer.status_code, answer.json()) == (500, {"error": "Removal failed"})
        assert (await channels(agent))["telegram"]["enabled"]


async def write_to_bot(agent: httpx.AsyncClient, sender: str, name: str) -> None:
    message = {"channel": "telegram", "sender": sender, "name": name}
    assert (await agent.post("/channels/message", json=message)).status_code == 200


async def test_a_first_message_is_told_and_approved(agent: httpx.AsyncClient) -> None:
    setup = {"botToken": TELEGRAM_BOT, "dmPolicy": "pairing"}
    assert (await agent.post("/v0/channels/telegram", json=setup)).status_code == 200
    async with agent.stream("GET", "/v0/channels/watch") as response, asyncio.timeout(20):
        assert (response.status_code, response.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
        lines = response.aiter_lines()

        async def next_state() -> dict:
            async for line in lines:
                if line.startswith("data:"):
                    return json.loads(line.removeprefix("data:"))["telegram"]
            raise AssertionError("the stream ended")

        assert (await next_state())["pairingRequests"] == []
        await write_to_bot(agent, "4711", "Ada\x1b[31m Lovelace\u202e")
        (request,) = (await next_state())["pairingRequests"]
        assert (request["senderId"], request["senderName"]) == ("4711", "Ada Lovelace\N{REPLACEMENT CHARACTER}")
        assert request["requestedAt"].endswith("Z")
        path = f"/v0/channels/telegram/pairing/{request['requestId']}/approve"
        assert (await agent.post(path)).json()["message"] == "Approved"
        assert (await next_state())["pairingRequests"] == []
        again = await agent.post(path)
        assert (again.status_code, again.json()) == (404, {"error": "Pairing request not found"})
        await write_to_bot(agent, "4711", "Ada")
        assert (await next_state())["lastMessageAt"].endswith("Z")
    answer = await agent.post("/v0/channels/slack/pairing/x/approve")
    assert (answer.status_code, answer.json()) == (400, {"error": "Unsupported channel"})


async def test_watches_are_bounded_and_end_with_their_clients(agent: httpx.AsyncClient) -> None:
    async with AsyncExitStack() as stack:
        streams = [await stack.enter_async_context(agent.stream("GET", "/v0/channels/watch")) for _ in range(17)]
        assert [stream.status_code for stream in streams] == [200] * 16 + [429]
    async with asyncio.timeout(10):
        while (answer := await open_and_close(agent)) != 200:
            assert answer == 429


async def open_and_close(agent: httpx.AsyncClient) -> int:
    async with agent.stream("GET", "/v0/channels/watch") as stream:
        return stream.status_code


async def test_messages_of_a_gateway_are_shown_without_tokens(agent: httpx.AsyncClient) -> None:
    await agent.post("/v0/channels/telegram", json={"botToken": UNWELL_BOT})
    shown = (await channels(agent))["telegram"]
    assert (shown["connected"], shown["lastError"]) == (False, "fetch of /bot[redacted]/getMe failed")
    logs = (await agent.get("/v0/logs")).json()["logs"]
    assert "/getMe failed" in logs
    assert UNWELL_BOT not in logs


async def test_one_token_belongs_to_one_agent(agent: httpx.AsyncClient, server: RunningServer) -> None:
    await agent.post("/v0/channels/slack", json={"botToken": SLACK_BOT, "appToken": SLACK_APP})
    api = server.client(server.key("others"))
    other = {"name": "b", "channels": {"slack": {"botToken": "xoxb-of-another-workspace", "appToken": SLACK_APP}}}
    unknown = await api.post("/v0/agents", json=other)
    assert unknown.status_code == 400  # unknown to Slack
    other["channels"]["slack"]["botToken"] = SLACK_BOT
    answer = await api.post("/v0/agents", json=other)
    assert (answer.status_code, answer.json()) == (409, {"error": "This token is used by another agent"})
    assert (await api.get("/v0/agents")).json()["agents"] == []


async def test_a_deleted_agents_token_is_free_again(server: RunningServer) -> None:
    api = server.client(server.key())
    for _ in range(2):
        body = {"name": "a", "channels": {"telegram": {"botToken": TELEGRAM_BOT, "allowFrom": ["7"]}}}
        answer = await api.post("/v0/agents", json=body)
        assert answer.status_code == 201, answer.text
        made = answer.json()["agent"]
        assert (await gateway(server.agent_client(made)))["telegram"]["allow_from"] == ["7"]
        assert (await api.delete(f"/v0/agents/{made['agentId']}")).status_code == 200


async def test_channels_outlive_a_restart_of_the_gateway(agent: httpx.AsyncClient) -> None:
    await agent.post("/v0/channels/telegram", json={"botToken": TELEGRAM_BOT, "allowFrom": ["7"]})
    assert (await agent.post("/v0/restart")).status_code == 200
    assert (await gateway(agent))["telegram"]["allow_from"] == ["7"]


async def test_the_free_plan_has_no_channels(server: RunningServer) -> None:
    api = server.client(server.key("poor", Plan.FREE))
    made = (await api.post("/v0/agents", json={"name": "a"})).json()["agent"]
    answer = await api.post(f"/v0/agents/{made['agentId']}/channels/telegram", json={"botToken": TELEGRAM_BOT})
    assert (answer.status_code, answer.json()) == (403, {"error": "Channels need a paid plan"})
    assert (await api.get(f"/v0/agents/{made['agentId']}/channels")).status_code == 200
    await api.delete(f"/v0/agents/{made['agentId']}")


async def test_channels_of_others_are_not_seen(agent: httpx.AsyncClient, server: RunningServer) -> None:
    await agent.post("/v0/channels/telegram", json={"botToken": TELEGRAM_BOT})
    agent_id = agent.headers["Host"].split(".")[0]
    thief = server.client(server.key("thief"))
    path = f"/v0/agents/{agent_id}/channels"
    assert (await thief.get(path)).status_code == 401
    assert (await thief.post(f"{path}/telegram", json={"enabled": False})).status_code == 401
    assert (await thief.delete(f"{path}/telegram")).status_code == 401
    assert (await channels(agent))["telegram"]["enabled"] is True


async def test_tokens_lie_sealed_on_the_disk(agent: httpx.AsyncClient, server: RunningServer) -> None:
    await agent.post("/v0/channels/discord", json={"botToken": DISCORD_BOT})
    kept = [path for path in server.roost.core.settings.data.glob("roost.db*") if path.is_file()]
    assert kept
    assert not any(token.encode() in path.read_bytes() for path in kept for token in TOKENS)
    logs = (await agent.get("/v0/logs")).text
    assert not any(token in logs for token in TOKENS)


async def test_a_channel_of_an_agent_that_does_not_run_waits_for_it(server: RunningServer) -> None:
    api = server.client(server.key())
    made = (await api.post("/v0/agents", json={"name": "fail-start"})).json()["agent"]
    path = f"/v0/agents/{made['agentId']}/channels"
    answer = await api.post(f"{path}/telegram", json={"botToken": TELEGRAM_BOT})
    assert answer.json()["message"] == "Telegram is configured; it takes effect when the agent starts"
    assert (await api.get(path)).json()["telegram"]["running"] is None
    assert (await api.delete(f"{path}/telegram")).status_code == 200
    await api.delete(f"/v0/agents/{made['agentId']}")
