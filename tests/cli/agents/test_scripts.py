"""`roost scripts`: what is asked of the server, and what is shown of its answer."""

import json

import pytest

from tests.cli.terminal import FakeServer

SCRIPTS = {
    "build": {
        "state": "failed",
        "reason": "It ended with code 3",
        "exitCode": 3,
        "startedAt": "2026-01-02T03:04:05.000006Z",
        "finishedAt": "2026-01-02T03:04:06.000006Z",
    },
    "start": {"state": "Not configured", "reason": None, "exitCode": None, "startedAt": None, "finishedAt": None},
}


@pytest.fixture
def ada(server: FakeServer) -> FakeServer:
    server.answers["GET /v0/agents"] = (200, {"agents": [{"agentId": "a1", "name": "Ada"}]})
    server.answers["GET /v0/agents/a1/scripts"] = (200, SCRIPTS)
    return server


def test_show_prints_states_of_scripts(ada: FakeServer) -> None:
    _, build, start = ada.run("scripts", "show", "Ada").stdout.splitlines()
    assert build.split() == [
        *("build", "failed", "3", "2026-01-02", "03:04", "2026-01-02", "03:04"),
        *("It", "ended", "with", "code", "3"),
    ]
    assert start.split() == ["start", "Not", "configured"]
    assert json.loads(ada.run("scripts", "show", "Ada", "-o", "json").stdout) == SCRIPTS


def test_retry_launches_scripts_again(ada: FakeServer) -> None:
    ada.answers["POST /v0/agents/a1/scripts/retry"] = (200, {"success": True, "message": "Scripts launched"})
    assert ada.run("scripts", "retry", "Ada").stdout == "Scripts launched\n"
    ada.answers["POST /v0/agents/a1/scripts/retry"] = (500, {"error": "Script launch failed"})
    assert ada.run("scripts", "retry", "Ada").exit_code == 1
