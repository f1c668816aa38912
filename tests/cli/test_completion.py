"""Completion: names of a server within a second, in the protocols of the shells; nothing, and no error, without one."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from roost.cli.client.context_file import ServerContext, change_contexts
from roost.cli.main import cli
from roost.core import clock
from roost.core.sensitive import Sensitive
from tests.cli.terminal import FakeServer

AGENTS = [
    {"agentId": "a1", "name": "Ada"},
    {"agentId": "a2", "name": "Twin"},
    {"agentId": "a3", "name": "Twin"},
    {"agentId": "a4", "name": "$(touch x)"},
    {"agentId": "a5", "name": 'it\'s; "x"'},
    {"agentId": "a6", "name": "-rf"},
]


def complete(line: str, shell: str = "bash", **environment: str) -> list[str]:
    """Return the completions that a shell gets for the last word of a line."""
    given = {
        "_ROOST_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split(" ")) - 1),
        "_TYPER_COMPLETE_ARGS": line,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    done = CliRunner().invoke(cli, [], env={**given, **environment}, prog_name="roost")
    assert (done.exit_code, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.fixture
def named(server: FakeServer) -> FakeServer:
    server.answers |= {
        "GET /v0/agents": (200, {"agents": AGENTS}),
        "GET /v0/secrets": (200, {"secrets": [{"id": "s1", "name": "KEY"}]}),
        "GET /v0/skills": (200, {"skills": [{"slug": "@ada/count", "name": "count"}, {"slug": None, "name": "plain"}]}),
        "GET /v0/public-templates?limit=100": (200, {"templates": [{"slug": "reader"}]}),
        "GET /v3/gateways?pageSize=100": (200, {"data": {"rows": [{"domain": "media"}]}}),
        "GET /v3/groups/private?limit=100": (200, {"data": {"groups": [{"id": "g1"}]}}),
        "GET /v0/agents/a1/domains": (200, {"domains": [{"domain": "app.example.com"}]}),
    }
    return server


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_names_of_agents_that_are_harmless_in_a_shell(named: FakeServer, shell: str) -> None:
    assert complete("roost agents show ", shell, **named.environment) == ["Ada", "a2", "a3", "a4", "a5", "a6"]


def test_zsh_evaluates_nothing_of_a_name(named: FakeServer) -> None:
    names = " ".join(f'"{name}"' for name in ("Ada", "a2", "a3", "a4", "a5", "a6"))
    assert " ".join(complete("roost logs ", "zsh", **named.environment)) == f"_arguments '*: :(({names}))'"


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("roost logs A", ["Ada"]),
        ("roost secrets attach Ada K", ["KEY"]),
        ("roost skills show ", ["@ada/count", "plain"]),
        ("roost templates show r", ["reader"]),
        ("roost gateways show ", ["media"]),
        ("roost groups show ", ["g1"]),
        ("roost domains verify Ada ", ["app.example.com"]),
        ("roost contexts us", ["use"]),
    ],
)
def test_names_of_other_things(named: FakeServer, line: str, names: list[str]) -> None:
    assert complete(line, **named.environment) == names


def test_contexts_and_the_agents_of_the_context_that_is_given(named: FakeServer, config: Path) -> None:
    with change_contexts() as file:
        file.contexts["work"] = ServerContext(named.url, Sensitive("work"))
    assert complete("roost contexts use ") == ["local", "work"]
    assert complete("roost --context work agents show A") == ["Ada"]
    assert named.requests[-1][1]["Authorization"] == "Bearer work"


@pytest.mark.parametrize("answer", [(401, {"error": "no"}), (200, []), (200, "x"), (200, {"agents": [{}]}), b"garbage"])
def test_no_such_answer_is_no_error(server: FakeServer, answer) -> None:
    server.answers["GET /v0/agents"] = answer
    assert complete("roost agents show ", **server.environment) == []


def test_the_program_itself_completes(named: FakeServer) -> None:
    given = {"_ROOST_COMPLETE": "complete_bash", "COMP_WORDS": "roost logs A", "COMP_CWORD": "2"}
    done = subprocess.run(
        [sys.executable, "-m", "roost"],
        env={**os.environ, **named.environment, **given},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "Ada\n", "")


def test_no_server_is_no_error(config: Path) -> None:
    assert complete("roost agents show ") == []
    assert complete("roost agents show ", ROOST_URL="http://127.0.0.1:1", ROOST_TOKEN="key") == []
    config.parent.mkdir(parents=True)
    config.write_text("damaged")
    assert complete("roost agents show ") == []


def test_a_server_that_does_not_answer_costs_a_second() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        began = clock.monotonic_seconds()
        assert complete("roost agents show ", ROOST_URL=url, ROOST_TOKEN="key") == []
        assert clock.monotonic_seconds() - began < 10  # of a busy machine; a request waits for minutes
