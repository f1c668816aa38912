"""Hermes's settings of channels, and the states it reports."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from roost.core.sensitive import Sensitive
from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.abilities.channels import ERROR_LIMIT, ChannelSetup, ChannelState, PairingRequest
from roost.drivers.engine.contract import EngineFailed
from roost.drivers.engine.hermes import channels
from roost.drivers.engine.hermes.driver import Hermes
from roost.drivers.engine.version_folder import VersionFolder
from roost.warden_client.errors import WardenFileNotFound
from tests.drivers.engine.hermes.test_driver import SETUP

TOKEN = "7000000001:AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc"
BOT, APP = Sensitive(TOKEN), Sensitive("xapp-1-A-2-c")


def managed(setups: Mapping[str, ChannelSetup]) -> tuple[dict[str, str], dict]:
    """Return the managed variables and the managed configuration of a gateway with these channels."""
    files = Hermes(Path("/nowhere")).plan("0.19.0", replace(SETUP, channels=setups)).files
    env = dict(line.split("=", 1) for line in files[".roost/hermes/.env"].decode().splitlines())
    return env, json.loads(files[".roost/hermes/config.yaml"])


@pytest.mark.parametrize(
    ("policy", "allow_from", "users", "all_users", "unknown", "adapter_list"),
    [
        ("open", (), "*", "true", "ignore", ["*"]),
        ("open", ("1", "2"), "1,2", "false", "ignore", ["1", "2"]),
        ("pairing", (), "0", "false", "pair", ["*"]),
        ("pairing", ("1",), "1", "false", "pair", ["*"]),
    ],
)
def test_each_policy_sets_all_keys(policy, allow_from, users, all_users, unknown, adapter_list) -> None:
    setup = ChannelSetup(BOT, None, policy, allow_from)
    env, config = managed(dict.fromkeys(("telegram", "discord"), setup))
    for name in ("TELEGRAM", "DISCORD"):
        assert env[f"{name}_BOT_TOKEN"] == TOKEN
        assert env[f"{name}_ALLOWED_USERS"] == users
        assert env[f"{name}_ALLOW_ALL_USERS"] == all_users
        assert config[name.lower()]["enabled"] is True
        assert config[name.lower()]["unauthorized_dm_behavior"] == unknown
    assert config["telegram"]["allow_from"] == adapter_list
    assert "SLACK_BOT_TOKEN" not in env


def test_slack_has_two_tokens() -> None:
    env, _ = managed({"slack": ChannelSetup(BOT, APP)})
    assert (env["SLACK_BOT_TOKEN"], env["SLACK_APP_TOKEN"]) == (TOKEN, "xapp-1-A-2-c")
    assert "TELEGRAM_FALLBACK_IPS" not in env


def test_other_channels_are_disabled() -> None:
    env, config = managed({})
    assert all(config[name] == {"enabled": False} for name in ("telegram", "slack", "discord"))
    assert not [name for name in env if name.startswith(("TELEGRAM", "SLACK", "DISCORD"))]


def test_plugins_of_disabled_channels_are_not_loaded() -> None:
    _, config = managed({"telegram": ChannelSetup(BOT)})
    assert config["plugins"] == {"disabled": ["slack-platform", "discord-platform"]}
    assert "plugins" in plan_config(b"display:\n  theme: disabled\n")


@pytest.mark.parametrize("users", [b"plugins:\n  disabled: [web]\n", b"plugins: {'disabled' : [web]}\n"])
def test_the_users_list_of_disabled_plugins_stays(users: bytes) -> None:
    assert "plugins" not in plan_config(users)


def plan_config(users: bytes) -> dict:
    """Return the managed configuration beside a configuration of the user."""
    setup = replace(SETUP, existing={".hermes/config.yaml": users})
    return json.loads(Hermes(Path("/nowhere")).plan("0.19.0", setup).files[".roost/hermes/config.yaml"])


def test_the_api_starts_before_channels_that_may_not_answer() -> None:
    _, config = managed({"telegram": ChannelSetup(BOT)})
    assert list(config["platforms"]) == ["api_server"]
    assert 3 * config["gateway"]["platform_connect_timeout"] < Hermes.start_deadline


def test_tokens_are_in_no_other_file_and_on_no_command_line() -> None:
    plan = Hermes(Path("/nowhere")).plan("0.19.0", replace(SETUP, channels={"telegram": ChannelSetup(BOT)}))
    holding = [path for path, content in plan.files.items() if TOKEN.encode() in content]
    assert holding == [".roost/hermes/.env"]
    assert TOKEN not in str(plan.env) + str(plan.argv)


def test_a_channel_with_an_installed_library_is_supported(tmp_path: Path) -> None:
    for version, libraries in (("0.19.0", ["telegram", "slack_bolt", "discord"]), ("0.18.0", ["telegram"])):
        for library in libraries:
            (tmp_path / "hermes" / version / "lib/python3.11/site-packages" / library).mkdir(parents=True)
    ability = channels.HermesChannels(VersionFolder(tmp_path / "hermes"), 1)
    assert ability.supported("0.19.0") == {"telegram", "slack", "discord"}
    assert ability.supported("0.18.0") == {"telegram"}


class FakeStream:
    """A connection to a gateway that answers every request with `detail`."""

    def __init__(self, detail: object) -> None:
        self._detail = detail

    def write(self, sent: bytes) -> None:
        assert b"Authorization: Bearer t\r\n" in sent
        body = json.dumps(self._detail).encode()
        self._left = [b"HTTP/1.0 200 OK\r\n\r\n" + body, b""]

    async def read(self, _most: int) -> bytes:
        return self._left.pop(0)

    def close(self) -> None:
        """Nothing to close."""


class FakeWarden:
    """A warden with a gateway, and the files of its home."""

    def __init__(self, detail: object, files: Mapping[str, bytes]) -> None:
        self._detail, self._files = detail, files

    async def dial(self, _port: int) -> tuple[FakeStream, FakeStream]:
        stream = FakeStream(self._detail)
        return stream, stream

    async def read(self, path: str, *, root: str, limit: int) -> bytes:
        assert (root, limit) == ("home", 65536)
        if path not in self._files:
            raise WardenFileNotFound
        return self._files[path]


async def status(detail: object, **files: bytes) -> Mapping[str, ChannelState]:
    """Return the states that a gateway tells, with files of pending requests by their channels."""
    paths = {f".hermes/pairing/{name}-pending.json": content for name, content in files.items()}
    agent = AgentContext(FakeWarden(detail, paths), Sensitive("t"), "0.19.0")  # type: ignore[arg-type] - only two methods are used
    return await channels.HermesChannels(VersionFolder(Path("/nowhere")), 1).status(agent)


async def test_states_are_read_and_errors_are_cut() -> None:
    error = "could not reach it " + "x" * 9_000
    found = await status(
        {
            "platforms": {
                "telegram": {"state": "retrying", "error_message": error},
                "slack": {"state": "connected", "error_message": None},
                "discord": {"state": "fatal", "error_message": "token rejected"},
                "api_server": {"state": "connected"},
            }
        }
    )
    assert found["slack"] == ChannelState(running=True, connected=True)
    assert found["discord"] == ChannelState(running=False, connected=False, last_error="token rejected")
    assert (found["telegram"].running, found["telegram"].connected) == (True, False)
    assert found["telegram"].last_error == error[:ERROR_LIMIT]
    assert set(found) == {"telegram", "slack", "discord"}


async def test_requests_are_read_without_their_codes() -> None:
    one = {"hash": "00", "salt": "00", "user_id": "4711", "user_name": "Ada\x1b[31m", "created_at": 1.5}
    pending = json.dumps({"e1": one, "e2": {"user_id": "U2", "created_at": "soon"}, "e3": 7, "e4": {}}).encode()
    found = await status({"platforms": {"telegram": {}, "slack": {}, "discord": {}}}, telegram=pending, slack=b"{")
    at = datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)
    assert found["telegram"].requests == (PairingRequest("4711", "Ada", at), PairingRequest("U2", None, None))
    assert found["slack"].requests == found["discord"].requests == ()


@pytest.mark.parametrize("detail", [{}, {"platforms": 7}, {"platforms": []}, {"platforms": {"x": 1}}])
async def test_garbage_has_no_channels(detail: object) -> None:
    assert await status(detail) == {}


async def test_a_channel_with_garbage_is_not_running() -> None:
    found = await status({"platforms": {"telegram": 7, "slack": {"state": {"a": 1}, "error_message": [1]}}})
    assert found["telegram"] == ChannelState(running=False, connected=False)
    assert found["slack"] == ChannelState(running=False, connected=False, last_error="[1]")


async def test_no_answer_is_a_failure() -> None:
    with pytest.raises(EngineFailed):
        await status([])
