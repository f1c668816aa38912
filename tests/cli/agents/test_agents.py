"""`roost agents`: what is asked of the server, what is shown of its answer, and how the command ends."""

import json
import webbrowser
from datetime import timedelta

import pytest

from roost.core import clock
from tests.cli.terminal import FakeServer

ADA = {
    "agentId": "a1",
    "name": "Ada",
    "engine": "hermes",
    "agentVersion": "1.0",
    "status": "running",
    "statusReason": None,
    "createdAt": "2026-01-02T03:04:05.000006Z",
    "gatewayToken": "rst_gw_secret",
}
RAN = {"stdout": "", "stderr": "", "exitCode": 0, "timedOut": False, "truncated": False}
LINK = "http://a1.agents.localhost:1/v0/sign-in?code=rst_once_1"
EXEC = "POST /v0/agents/a1/console/exec"


@pytest.fixture
def ada(server: FakeServer) -> FakeServer:
    server.answers["GET /v0/agents"] = (200, {"agents": [ADA]})
    server.answers["GET /v0/agents/a1"] = (200, {"agent": ADA, "processStatus": "running", "skills": []})
    return server


def test_list_shows_each_agent(ada: FakeServer) -> None:
    head, row = ada.run("agents", "list").stdout.splitlines()
    assert head.split("  ")[0] == "AGENT ID"
    assert row.split() == ["a1", "Ada", "hermes", "1.0", "running", "2026-01-02", "03:04"]
    assert json.loads(ada.run("agents", "list", "-o", "json").stdout) == [ADA]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-3, "just now"), (59, "just now"), (60, "1 minute ago"), (7_199, "1 hour ago"), (200_000, "2 days ago")],
)
def test_the_list_shows_the_last_use(ada: FakeServer, seconds: int, words: str) -> None:
    used = clock.format_iso(clock.utc_now() - timedelta(seconds=seconds))
    ada.answers["GET /v0/agents"] = (200, {"agents": [{**ADA, "lastUsedAt": used}]})
    assert ada.run("agents", "list").stdout.splitlines()[1].rstrip().endswith(f"  {words}")
    assert json.loads(ada.run("agents", "list", "-o", "json").stdout)[0]["lastUsedAt"] == used


def test_create_asks_for_what_was_given_and_shows_no_token(server: FakeServer) -> None:
    server.answers["POST /v0/agents"] = (201, {"success": True, "agent": ADA})
    made = server.run("agents", "create", "Ada", "--engine", "hermes", "--emoji", "🦉")
    assert made.exit_code == 0
    assert server.bodies("POST /v0/agents") == [{"name": "Ada", "engine": "hermes", "emoji": "🦉"}]
    assert "a1" in made.stdout
    assert "rst_gw" not in made.stdout
    plain = server.run("agents", "create", "Ada", "-o", "json")
    assert json.loads(plain.stdout) == {name: value for name, value in ADA.items() if name != "gatewayToken"}
    assert server.bodies("POST /v0/agents")[1] == {"name": "Ada"}
    assert server.run("agents", "create", "Ada", "--snapshot", "bafy").exit_code == 0
    assert server.bodies("POST /v0/agents")[2] == {"name": "Ada", "snapshotCid": "bafy"}


def test_a_create_that_fails_says_why(server: FakeServer) -> None:
    failed = {**ADA, "status": "failed", "statusReason": "The gateway exited.\n\x1b[31mIts last line"}
    server.answers["POST /v0/agents"] = (500, {"error": "Gateway failed to start", "agent": failed})
    made = server.run("agents", "create", "Ada")
    assert made.exit_code == 1
    assert made.stderr.splitlines() == ["Error: Gateway failed to start. The gateway exited.", "Its last line"]


def test_show_prints_one_agent_without_its_token(ada: FakeServer) -> None:
    shown = ada.run("agents", "show", "Ada").stdout
    assert "processStatus  running" in shown
    assert "rst_gw" not in shown
    assert "skills" not in shown
    assert json.loads(ada.run("agents", "show", "Ada", "-o", "json").stdout)["skills"] == []


@pytest.mark.parametrize(("typed", "deleted"), [("y\n", True), ("n\n", False), ("\n", False), ("", False)])
def test_delete_asks_first(ada: FakeServer, typed: str, deleted: bool) -> None:
    ada.answers["DELETE /v0/agents/a1"] = (200, {"success": True, "message": "Agent deleted"})
    answer = ada.run("agents", "delete", "Ada", input=typed)
    assert (answer.exit_code == 0) is deleted
    assert (("Agent deleted" in answer.stdout), len(ada.bodies("DELETE /v0/agents/a1"))) == (deleted, int(deleted))


def test_delete_without_asking(ada: FakeServer) -> None:
    ada.answers["DELETE /v0/agents/a1"] = (200, {"success": True, "message": "Agent deleted"})
    assert ada.run("agents", "delete", "Ada", "--yes").stdout == "Agent deleted\n"


def test_the_token_is_printed_alone_and_rotated_after_a_question(ada: FakeServer) -> None:
    ada.answers["GET /v0/agents/a1/gateway-token"] = (200, {"token": "rst_gw_old"})
    ada.answers["POST /v0/agents/a1/gateway-token/rotate"] = (200, {"token": "rst_gw_new"})
    assert ada.run("agents", "token", "Ada").stdout == "rst_gw_old\n"
    refused = ada.run("agents", "token", "Ada", "--rotate", input="n\n")
    assert (refused.exit_code, "All programs with the present gateway token" in refused.stderr) == (1, True)
    assert ada.bodies("POST /v0/agents/a1/gateway-token/rotate") == []
    assert ada.run("agents", "token", "Ada", "--rotate", "--yes").stdout == "rst_gw_new\n"


@pytest.mark.parametrize("command", [("open",), ("agents", "open")])
@pytest.mark.parametrize(
    ("options", "found", "stdout"),
    [((), True, "Opened http://a1.agents.localhost:1/\n"), ((), False, f"{LINK}\n"), (("--print",), None, f"{LINK}\n")],
)
def test_open_signs_in_by_a_link_and_shows_no_token(
    ada: FakeServer,
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
    options: tuple[str, ...],
    found: bool | None,
    stdout: str,
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda url: opened.append(url) or found)
    ada.answers["GET /v0/agents"] = (200, {"agents": [{**ADA, "url": "http://a1.agents.localhost:1"}]})
    ada.answers["GET /v0/agents/a1"] = (200, {"agent": {**ADA, "gatewayToken": None}})
    ada.answers["GET /v0/agents/a1/gateway-token"] = (200, {"token": "rst_gw_old"})
    ada.answers["POST /v0/agents/a1/sign-in-link"] = (201, {"url": LINK, "expiresAt": "2026-01-02T03:05:05.000006Z"})
    ada.answers["GET /"] = (200, "<html>")
    done = ada.run(*command, "Ada", *options)
    assert opened == ([LINK] if found is not None else [])
    assert (done.exit_code, done.stdout) == (0, stdout)
    assert "rst_gw" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("status", "code", "told"), [(404, 5, "Ada has no page for a browser"), (502, 1, "The server answered 502")]
)
def test_open_finds_out_whether_there_is_a_page(
    ada: FakeServer, monkeypatch: pytest.MonkeyPatch, status: int, code: int, told: str
) -> None:
    monkeypatch.setattr(webbrowser, "open", pytest.fail)
    ada.answers["GET /v0/agents/a1"] = (200, {"agent": {**ADA, "gatewayToken": "rst_gw_own"}})
    ada.answers["GET /"] = (status, "404: Not Found")
    done = ada.run("agents", "open", "Ada")
    assert (done.exit_code, told in done.stderr) == (code, True)
    headers = next(headers for line, headers, _ in ada.requests if line == "GET /")
    assert headers["Host"].startswith("a1.agents.localhost")


def test_restart_takes_a_version(ada: FakeServer) -> None:
    ada.answers["POST /v0/agents/a1/restart"] = (200, {"success": True, "message": "Agent restarted"})
    assert ada.run("agents", "restart", "Ada").stdout == "Agent restarted\n"
    ada.run("agents", "restart", "a1", "--version", "2.0")
    assert ada.bodies("POST /v0/agents/a1/restart") == [{}, {"version": "2.0"}]


def test_logs_are_printed(ada: FakeServer) -> None:
    ada.answers["GET /v0/agents/a1/logs"] = [(200, {"logs": "one\ntwo"}), (200, {"logs": ""})]
    assert ada.run("agents", "logs", "Ada").stdout == "one\ntwo\n"
    assert ada.run("agents", "logs", "Ada").stdout == ""


def test_exec_prints_the_result_as_json(ada: FakeServer) -> None:
    ada.answers[EXEC] = (200, {**RAN, "exitCode": 7})
    result = ada.run("agents", "exec", "--cwd", "sub", "--timeout", "5", "-o", "json", "Ada", "x")
    assert (result.exit_code, json.loads(result.stdout)["exitCode"]) == (7, 7)
    assert ada.bodies(EXEC) == [{"command": "x", "cwd": "sub", "timeoutSeconds": 5}]
    assert ada.run("exec", "-i", "-o", "json", "Ada", "x").exit_code == 2


@pytest.mark.parametrize("typed", [["exec", "Ada"], ["exec", "--timeout", "0", "Ada", "x"], ["create"], ["list", "x"]])
def test_wrong_usage_sends_nothing(ada: FakeServer, typed: list[str]) -> None:
    assert ada.run("agents", *typed).exit_code == 2
    assert ada.requests == []
