"""The command line against a running server and without one: what it prints and how it exits."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.journeys.server_process import ROOST, until, up

pytestmark = [pytest.mark.engine, pytest.mark.timeout(200)]


def roost(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*ROOST, *arguments], capture_output=True, text=True, check=False, timeout=60, env={**os.environ, **environment}
    )


def test_an_agents_life_by_command(tmp_path: Path) -> None:
    with up(tmp_path / "data", "--no-first-agent") as server:
        created = server.roost("agents", "create", "Ada", "--engine", "hermes", "-o", "json")
        assert created.returncode == 0, created.stderr
        agent = json.loads(created.stdout)
        assert "gatewayToken" not in agent
        assert "Ada" in server.roost("agents", "list").stdout
        listed = json.loads(server.roost("agents", "list", "-o", "json").stdout)
        assert [one["agentId"] for one in listed] == [agent["agentId"]]
        assert json.loads(server.roost("agents", "show", "Ada", "-o", "json").stdout)["processStatus"] == "running"
        ran = server.roost("agents", "exec", "Ada", "--", "sh", "-c", "echo out; echo err >&2; exit 7")
        assert (ran.stdout, ran.stderr, ran.returncode) == ("out\n", "err\n", 7)
        assert server.roost("agents", "logs", "Ada").stdout.strip()
        assert server.roost("agents", "restart", "Ada").returncode == 0
        assert "several words" in server.roost("chat", "Ada", "several words").stdout
        assert "from a pipe" in server.roost("chat", "Ada", input="from a pipe\n").stdout
        assert server.roost("agents", "show", "Nobody").returncode == 5
        assert server.roost("agents", "delete", "Ada", "--yes").returncode == 0
        assert json.loads(server.roost("agents", "list", "-o", "json").stdout) == []


def test_keys_beside_a_running_server(tmp_path: Path) -> None:
    with up(tmp_path / "data", "--no-first-agent") as server:
        token = server.roost("keys", "create", "--tenant", "team", "--plan", "paid", "--name", "ci").stdout
        assert token.count("\n") == 1
        environment = {"ROOST_URL": server.url, "ROOST_TOKEN": token.strip()}
        assert roost("agents", "list", **environment).returncode == 0
        (key,) = json.loads(server.roost("keys", "list", "--tenant", "team", "-o", "json").stdout)
        assert server.roost("keys", "revoke", key["id"], "--yes").returncode == 0
        until(lambda: roost("agents", "list", **environment).returncode == 4, deadline=10)
        assert token.strip() not in server.text()


def test_keys_without_a_server(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    made = roost("keys", "create", "--data", str(tmp_path / "d"))
    assert made.returncode == 0, made.stderr
    assert len(made.stdout.split(".")) == 3
    assert roost("keys", "create", "--scope", "no:such", "--data", str(tmp_path / "d")).returncode == 2


def test_no_server_says_so(tmp_path: Path) -> None:
    answer = roost("agents", "list", "--data", str(tmp_path))
    assert answer.returncode == 3
    assert "roost up" in answer.stderr


@pytest.mark.parametrize("command", [["api", "routes"], ["engines", "list"], ["doctor"]])
def test_records_as_table_and_json(tmp_path: Path, command: list[str]) -> None:
    plain = roost(*command, *([] if command == ["api", "routes"] else ["--data", str(tmp_path)]))
    assert plain.returncode == 0, plain.stderr
    rows = json.loads(roost(*command, "-o", "json").stdout)
    assert rows
    assert isinstance(rows[0], dict)


def test_a_bad_setting_ends_in_one_line(tmp_path: Path) -> None:
    answer = roost("up", "--data", str(tmp_path), ROOST_PORT="http")
    assert answer.returncode == 2
    assert answer.stderr.startswith("Error: port")
    assert len(answer.stderr.splitlines()) <= 2
