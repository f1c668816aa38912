"""`roost channels`: what is asked of the server, where tokens come from, and that none is shown."""

import json
from pathlib import Path

import pytest

from roost.cli.client import message_stream
from roost.cli.output.output import ExitCode
from tests.cli.terminal import FakeServer

PATH = "/v0/agents/a1/channels"
TELEGRAM = {
    "enabled": True,
    "botUsername": "weather_bot",
    "dmPolicy": "open",
    "allowFrom": ["1", "2"],
    "connected": False,
}
DONE = {"success": True, "message": "Slack is configured", "botUsername": "weather", "warning": "Beware"}


@pytest.fixture
def ada(server: FakeServer) -> FakeServer:
    server.answers["GET /v0/agents"] = (200, {"agents": [{"agentId": "a1", "name": "Ada", "engine": "openclaw"}]})
    channels = {"telegram": {"pairingCodes": True, "reportsMessages": True}}
    engines = [{"id": "openclaw", "label": "OpenClaw", "abilities": ["channels"], "channels": channels}]
    server.answers["GET /v0/agents/engines"] = (200, {"engines": engines})
    server.answers[f"GET {PATH}"] = (200, {"telegram": TELEGRAM, "slack": None, "version": "1"})
    server.answers[f"POST {PATH}/slack"] = (200, DONE)
    server.answers[f"POST {PATH}/telegram"] = (200, DONE)
    server.answers[f"DELETE {PATH}/telegram"] = (200, {"success": True, "message": "Telegram is removed"})
    return server


def test_list_shows_configured_channels(ada: FakeServer) -> None:
    head, row = ada.run("channels", "list", "Ada").stdout.splitlines()
    assert head.split()[0] == "CHANNEL"
    assert row.split() == ["telegram", "true", "weather_bot", "open", "1,", "2", "false"]
    assert json.loads(ada.run("channels", "list", "Ada", "-o", "json").stdout)["slack"] is None


def test_list_says_why_a_token_was_not_checked(ada: FakeServer) -> None:
    why = {
        "unchecked": "The token was not checked. It answered \x1b[2J503",
        "uncheckedAt": "2026-01-02T03:04:05.000006Z",
    }
    ada.answers[f"GET {PATH}"] = (200, {"telegram": {**TELEGRAM, **why}, "version": "1"})
    shown = " ".join(ada.run("channels", "list", "Ada").stdout.split())
    assert "\x1b" not in shown
    for word in ("checked.", "503", "2026-01-02"):
        assert word in shown
    ada.answers[f"GET {PATH}"] = (200, {"telegram": {**TELEGRAM, **why, "lastError": "getMe failed"}, "version": "1"})
    assert "getMe failed" in " ".join(ada.run("channels", "list", "Ada").stdout.split())


def test_tokens_come_from_files_or_standard_input(ada: FakeServer, tmp_path: Path) -> None:
    file = tmp_path / "bot"
    file.write_text("xoxb-1\n")
    done = ada.run("channels", "set", "Ada", "slack", "--bot-token-file", str(file), input="xapp-1\n")
    assert done.exit_code == 0
    assert "Beware" in done.stdout
    assert "xoxb" not in done.stdout + done.stderr
    ada.run(
        "channels",
        "set",
        "Ada",
        "telegram",
        "--dm-policy",
        "pairing",
        "--allow-from",
        "1",
        "--allow-from",
        "2",
        "--yes",
        input="t\n",
    )
    assert ada.bodies(f"POST {PATH}/slack") == [{"botToken": "xoxb-1", "appToken": "xapp-1", "dmPolicy": "pairing"}]
    assert ada.bodies(f"POST {PATH}/telegram") == [{"botToken": "t", "dmPolicy": "pairing", "allowFrom": ["1", "2"]}]


def test_a_new_channel_asks_strangers_for_a_code_unless_told_otherwise(ada: FakeServer) -> None:
    ada.answers[f"GET {PATH}"] = (200, {"telegram": None, "slack": None})
    for more in ([], ["--allow-anyone"], ["--dm-policy", "open"], ["--allow-from", "7"]):
        assert ada.run("channels", "set", "Ada", "telegram", *more, "--yes", input="t\n").exit_code == 0
    policies = [body.get("dmPolicy") for body in ada.bodies(f"POST {PATH}/telegram")]
    assert policies == ["pairing", None, "open", None]


def test_a_code_is_approved(ada: FakeServer) -> None:
    path = f"POST {PATH}/telegram/pairing/AB%3B%20id/approve"
    ada.answers[path] = [(200, {"success": True, "message": "Approved"}), (404, {"error": "Pairing request not found"})]
    done = ada.run("channels", "approve", "Ada", "telegram", "AB; id")
    assert (done.exit_code, done.stdout) == (0, "Approved\n")
    ada.headers["X-Error-Code"] = "pairing_request_not_found"
    unknown = ada.run("channels", "approve", "Ada", "telegram", "AB; id")
    assert (unknown.exit_code, unknown.stdout, "sends a new code" in unknown.stderr) == (5, "", True)


def test_a_request_is_approved_by_its_id(ada: FakeServer) -> None:
    ada.answers[f"POST {PATH}/telegram/pairing/r1/approve"] = (200, {"success": True, "message": "Approved"})
    done = ada.run("channels", "approve", "Ada", "telegram", "r1")
    assert (done.exit_code, done.stdout) == (0, "Approved\n")


def test_a_watch_prints_requests_and_messages(ada: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_stream, "sleep", lambda _: None)
    request = {"requestId": None, "senderId": "4711", "senderName": None, "requestedAt": None}
    telegram = {
        "connected": True,
        "lastError": None,
        "lastMessageAt": "2026-01-01T00:00:00Z",
        "pairingRequests": [request],
    }
    event = json.dumps({"telegram": telegram, "slack": None, "version": "1"})
    removed = (404, {"error": "Agent not found"})
    ada.answers[f"GET {PATH}/watch"] = [(200, f": watching\n\ndata: {event}\n\n"), removed]
    done = ada.run("channels", "watch", "Ada")
    assert done.stdout.splitlines() == [
        "telegram: connected, last message 2026-01-01T00:00:00Z",
        "telegram: (4711) asks to write, request by its code only",
    ]
    assert done.exit_code == ExitCode.NOT_FOUND


def test_the_rest_is_changed_without_a_token(ada: FakeServer) -> None:
    ada.run("channels", "set", "Ada", "telegram", "--keep-tokens", "--allow-anyone", "--disable", "--yes")
    assert ada.bodies(f"POST {PATH}/telegram") == [{"allowFrom": [], "enabled": False}]


def test_a_file_that_is_not_there_is_said(ada: FakeServer) -> None:
    failed = ada.run("channels", "set", "Ada", "telegram", "--bot-token-file", "/nowhere/token")
    assert failed.exit_code == 2
    assert "could not be read" in failed.stderr


def test_remove_asks_first(ada: FakeServer) -> None:
    assert ada.run("channels", "remove", "Ada", "telegram", input="n\n").exit_code == 1
    assert ada.run("channels", "remove", "Ada", "telegram", "--yes").stdout == "Telegram is removed\n"


def test_a_refusal_ends_the_command(ada: FakeServer) -> None:
    ada.answers[f"POST {PATH}/telegram"] = (403, {"error": "Channels need a paid plan"})
    failed = ada.run("channels", "set", "Ada", "telegram", input="t\n")
    assert (failed.exit_code, failed.stderr) == (4, "Error: Channels need a paid plan\n")


def test_a_refusal_for_lack_of_a_token_names_its_option(ada: FakeServer) -> None:
    ada.answers[f"POST {PATH}/telegram"] = (400, {"error": "botToken is required (string)"})
    ada.headers["X-Error-Code"] = "missing_bot_token"
    failed = ada.run("channels", "set", "Ada", "telegram", input="y\n")
    assert "`--bot-token-file FILE` names the file with the bot's token" in failed.stderr
