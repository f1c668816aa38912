"""People write to an agent's bots on fake platforms, and the agent answers there.

It answers through the egress proxy, with the operator's host names and certificate authority, on real engines.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx2 as httpx
import pytest

from roost.core import clock
from tests.journeys.server_process import ServerProcess, until, up
from tests.platforms.discord import Discord
from tests.platforms.slack import Slack
from tests.platforms.standin import FakePlatform, FakePlatforms, serve_platforms
from tests.platforms.telegram import Telegram

pytestmark = [pytest.mark.engine, pytest.mark.timeout(400)]

FRIEND = {"telegram": "5550001", "slack": "U0FRIEND1", "discord": "220000000000000001"}
STRANGER = {"telegram": "5559999", "slack": "U0STRANG9", "discord": "229999999999999999"}
OWN_BUSINESS = {"hermes": set[str](), "openclaw": {"clawhub.ai"}}
"""What an engine asks for at a start whatever its channels are."""
PATIENCE = 150.0  # seconds for one answer, on a busy machine


@dataclass
class ChannelsEnv:
    server: ServerProcess
    platforms: FakePlatforms
    client: httpx.Client
    telegram: Telegram = field(default_factory=Telegram)
    slack: Slack = field(default_factory=Slack)
    discord: Discord = field(default_factory=Discord)

    @property
    def standins(self) -> dict[str, FakePlatform]:
        return {"telegram": self.telegram, "slack": self.slack, "discord": self.discord}

    def wait_until_connected(self, agent: str) -> None:
        """Wait until every enabled channel is reported as connected."""
        url, told = f"/v0/agents/{agent}/channels", list[Any]()

        def connected() -> bool:
            told.append(self.client.get(url).json())
            return _all_connected(told[-1])

        try:
            until(connected, PATIENCE, every=0.5)
        except AssertionError:
            pytest.fail(f"not connected: {told[-1]}")

    def state(self, agent: str, name: str) -> dict[str, Any]:
        return self.client.get(f"/v0/agents/{agent}/channels").json()[name]

    def send_message(self, name: str, user: str, words: str) -> None:
        self.standins[name].say(user, f"Kindly /say {words}")

    def answer(self, name: str, user: str, words: str) -> None:
        """Return the agent's answer; an echo of the question would be longer."""
        standin = self.standins[name]
        try:
            until(lambda: words in standin.said(user), PATIENCE)
        except AssertionError:
            pytest.fail(f"{name} has no answer with {words!r}: {standin.said(user)!r} after {standin.asked[-30:]}")
        assert "Kindly" not in standin.said(user)

    def code(self, name: str, user: str) -> str:
        """Return the pairing code that a stranger gets."""
        found = until(lambda: re.search(r"\b[A-Z0-9]{8}\b", self.standins[name].said(user)), PATIENCE)
        return found[0]


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChannelsEnv]:
    telegram, slack, discord = Telegram(), Slack(), Discord()
    folder = tmp_path_factory.mktemp("channels")
    with serve_platforms(telegram, slack, discord) as platforms:
        (folder / "ca.pem").write_bytes(platforms.authority.certificate)
        settings = {
            **platforms.settings,
            "ROOST_CA_FILE": str(folder / "ca.pem"),
            "ROOST_LOG_LEVEL": "info",
            "ROOST_TELEGRAM_API": platforms.plain("api.telegram.org"),
            "ROOST_SLACK_API": f"{platforms.plain('slack.com')}/api",
            "ROOST_DISCORD_API": f"{platforms.plain('discord.com')}/api/v10",
        }
        with up(folder / "data", "--no-first-agent", **settings) as server:
            made = server.roost("keys", "create", "--tenant", "team", "--plan", "paid")
            headers = {"Authorization": f"Bearer {made.stdout.strip()}"}
            with httpx.Client(base_url=server.url, headers=headers, timeout=150, trust_env=False) as client:
                yield ChannelsEnv(server, platforms, client, telegram, slack, discord)


@pytest.mark.parametrize("engine", ["hermes", "openclaw"])
def test_people_are_answered_where_they_write(env: ChannelsEnv, engine: str) -> None:
    body = {"name": engine, "engine": engine, "channels": _channels(env)}
    created = env.client.post("/v0/agents", json=body)
    assert created.status_code == 201, created.text
    agent = created.json()["agent"]["agentId"]
    try:
        env.wait_until_connected(agent)
        check_conversations(env, engine)
        _change(env, agent, engine)
    finally:
        env.client.delete(f"/v0/agents/{agent}")
    check_calls(env, agent, engine)
    for standin in env.standins.values():
        standin.posted.clear()


def _channels(env: ChannelsEnv) -> dict[str, Any]:
    """Return channels with different policies: a list, a list with pairing codes for strangers, and open."""
    return {
        "telegram": {"botToken": env.telegram.token, "allowFrom": [FRIEND["telegram"]]},
        "slack": {
            "botToken": env.slack.token,
            "appToken": env.slack.app_token,
            "dmPolicy": "pairing",
            "allowFrom": [FRIEND["slack"]],
        },
        "discord": {"botToken": env.discord.token},
    }


def check_conversations(env: ChannelsEnv, engine: str) -> None:
    for name in env.standins:
        env.send_message(name, STRANGER[name], f"{engine} strangers by {name}")
        env.send_message(name, FRIEND[name], f"{engine} friends by {name}")
    for name in env.standins:
        env.answer(name, FRIEND[name], f"{engine} friends by {name}")
    env.answer("discord", STRANGER["discord"], f"{engine} strangers by discord")
    assert env.code("slack", STRANGER["slack"])
    assert "strangers by" not in env.slack.said(STRANGER["slack"])
    assert env.telegram.said(STRANGER["telegram"]) == ""  # it wrote before the friend, who got an answer


def _change(env: ChannelsEnv, agent: str, engine: str) -> None:
    """Change the policy without sending the token again; then the owner approves the stranger."""
    changed_at = clock.format_iso(clock.utc_now())
    changed = env.client.post(f"/v0/agents/{agent}/channels/telegram", json={"dmPolicy": "pairing"})
    assert changed.status_code == 200, changed.text
    env.wait_until_connected(agent)
    stranger = STRANGER["telegram"]
    env.send_message("telegram", stranger, f"{engine} again")
    code = env.code("telegram", stranger)
    assert "again" not in env.telegram.said(stranger)
    _approve(env, agent, engine, code)
    env.send_message("telegram", stranger, f"{engine} let in")
    env.answer("telegram", stranger, f"{engine} let in")
    if engine == "openclaw":
        until(lambda: (env.state(agent, "telegram")["lastMessageAt"] or "") > changed_at, 20)


def _approve(env: ChannelsEnv, agent: str, engine: str, code: str) -> None:
    """Approve the stranger's request, by its id where the engine has one."""
    stranger = STRANGER["telegram"]
    (request,) = until(lambda: env.state(agent, "telegram")["pairingRequests"], 20)
    assert (request["senderId"], request["senderName"]) == (stranger, f"User {stranger}")
    if engine == "openclaw":
        path = f"/v0/agents/{agent}/channels/telegram/pairing/{request['requestId']}/approve"
        assert env.client.post(path).status_code == 200
        until(lambda: "access approved" in env.telegram.said(stranger), 20)  # the bot tells its person
    else:
        assert request["requestId"] is None
        unknown = env.client.post(f"/v0/agents/{agent}/channels/telegram/pairing/OLDCODE1/approve")
        assert (unknown.status_code, unknown.json()) == (404, {"error": "Pairing request not found"})
        approved = env.client.post(f"/v0/agents/{agent}/channels/telegram/pairing/{code}/approve")
        assert approved.status_code == 200, approved.text
    until(lambda: not env.state(agent, "telegram")["pairingRequests"], 20)


def check_calls(env: ChannelsEnv, agent: str, engine: str) -> None:
    """Check that every call had its token, that no other host was called, and that no token is in the server's log."""
    for standin in env.standins.values():
        assert standin.asked
        assert standin.refused == []
    assert set(env.discord.identified) == {env.discord.token}
    assert env.slack.acknowledged
    assert env.platforms.strangers == []
    platforms = {host for standin in env.standins.values() for host in standin.hosts}
    until(lambda: _hosts(env.server, agent) >= platforms, 20)
    assert _hosts(env.server, agent) - OWN_BUSINESS[engine] == platforms
    for token in (env.telegram.token, env.slack.token, env.slack.app_token, env.discord.token):
        assert token not in env.server.text()


def _hosts(server: ServerProcess, agent: str) -> set[str]:
    """Return the hosts of the agent's finished connections from the log of the egress proxy."""
    told = [json.loads(line) for line in server.text().splitlines() if line[:1] + line[-1:] == "{}"]
    mine = [line for line in told if line.get("event") == "egress.closed" and line["agent"] == agent]
    return {line["host"] for line in mine if line["host"]}  # a connection can end before its request


def _all_connected(told: dict[str, Any]) -> bool:
    on = [channel for name, channel in told.items() if name != "version" and channel]
    return bool(on) and all(channel.get("connected") for channel in on)
