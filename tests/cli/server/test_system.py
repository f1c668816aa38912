"""`roost system ...`: what the operator sees of a server over HTTP."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from roost import app, config
from roost.agents.lifecycle.hosts.model import HostIdentity
from roost.agents.lifecycle.hosts.service import HostService
from tests.cli.terminal import FakeServer, run

STATE: dict[str, Any] = {
    "software": {"roost": "0.1.0", "python": "3.11.7"},
    "checks": {"database": "ok", "disk": "failing"},
    "hosts": [{"name": "one", "isRunning": True}, {"name": "two", "isRunning": False}],
    "operations": {"pending": 3, "paused": 0, "running": 1},
    "disk": {"free": 10, "total": 20},
    "memory": {"total": 8, "available": 4, "server": 2},
}
ENGINE: dict[str, Any] = {
    "engine": "openclaw",
    "installedVersions": ["2.0", "1.0"],
    "availableVersions": ["2.1"],
    "latestVersion": "2.1",
    "outdatedAgents": [{"agentId": "a1", "name": "Ada", "agentVersion": "1.0"}],
}


@pytest.fixture
def deployment(server: FakeServer) -> FakeServer:
    server.answers["GET /v0/system"] = (200, STATE)
    server.answers["GET /v0/system/engines"] = (200, {"engines": [ENGINE]})
    found = {"part": "disk", "status": "fail", "detail": "full"}
    server.answers["GET /v0/system/checks"] = (200, {"checks": [found]})
    return server


def test_show_prints_the_state_of_the_deployment(deployment: FakeServer) -> None:
    lines = [" ".join(line.split()) for line in deployment.run("system", "show").stdout.splitlines()]
    assert {"failing disk", "servers one (running), two (stopped)", "operations pending 3"} <= set(lines)
    assert json.loads(deployment.run("system", "show", "-o", "json").stdout) == STATE


def test_checks_print_their_result(deployment: FakeServer) -> None:
    assert deployment.run("system", "checks").stdout.splitlines()[1].split() == ["fail", "disk", "full"]


def test_engines_list_agents_that_are_behind(deployment: FakeServer) -> None:
    row = deployment.run("system", "engines").stdout.splitlines()[1].split()
    assert row == ["openclaw", "2.1", "2.0,", "1.0", "2.1", "Ada"]
    assert json.loads(deployment.run("system", "engines", "-o", "json").stdout) == [ENGINE]


def register(folder: Path) -> None:
    """Register a server that has stopped."""
    db = app.open_database(config.load_settings({"ROOST_DATA": str(folder)}))

    async def start_and_stop() -> None:
        server = HostService(db, HostIdentity("h1", "one.example", "/srv/data", "s"), lambda: None)
        await server.start()
        await server.stop()

    asyncio.run(start_and_stop())
    db.close()


def test_servers_are_listed_and_removed(tmp_path: Path) -> None:
    register(tmp_path)
    (row,) = json.loads(run("hosts", "list", "--data", str(tmp_path), "-o", "json").stdout)
    assert (row["id"], row["name"], row["folder"], row["running"]) == ("h1", "one.example", "/srv/data", False)
    remove = ("hosts", "remove", "h1", "--data", str(tmp_path))
    assert run(*remove, input="n\n").exit_code != 0
    assert run(*remove, "--yes").stdout == "Removed, with 0 agents.\n"
    again = run(*remove, "--yes")
    assert (again.exit_code, "no such host" in str(again.exception or again.stderr)) == (1, True)
