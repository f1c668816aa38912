"""The scripts of a manifest over HTTP: shapes, states, logs, exact messages."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx2 as httpx
import pytest

from tests.support.server import RunningServer, running

NOTHING = {"state": "Not configured", "reason": None, "exitCode": None, "startedAt": None, "finishedAt": None}


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    async with running(tmp_path_factory.mktemp("s") / "data") as server:
        yield server


@pytest.fixture
async def record(server: RunningServer) -> AsyncIterator[dict[str, Any]]:
    api = server.client(server.key())
    made = (await api.post("/v0/agents", json={"name": "a"})).json()["agent"]
    yield made
    await api.delete(f"/v0/agents/{made['agentId']}")


@pytest.fixture
def agent(server: RunningServer, record: dict[str, Any]) -> httpx.AsyncClient:
    return server.agent_client(record)


async def write(agent: httpx.AsyncClient, build: str, start: str) -> None:
    manifest = json.dumps({"version": 1, "agent": {"name": "a"}, "scripts": {"build": build, "start": start}})
    command = f"cat > manifest.json <<'END'\n{manifest}\nEND"
    assert (await agent.post("/v0/console/exec", json={"command": command})).json()["exitCode"] == 0


async def wait_for_build(agent: httpx.AsyncClient, build: str) -> dict[str, Any]:
    """Return the scripts once the build is in that state and the start is not waiting for it."""
    deadline = time.monotonic() + 30
    while True:
        scripts = (await agent.get("/v0/scripts")).json()
        if scripts["build"]["state"] == build and scripts["start"]["state"] != "pending":
            return scripts
        assert time.monotonic() < deadline, scripts
        await asyncio.sleep(0.02)


async def test_nothing_is_configured_at_first(record: dict[str, Any], agent: httpx.AsyncClient) -> None:
    assert (await agent.get("/v0/scripts")).json() == {"build": NOTHING, "start": NOTHING}
    detail = (await agent.get(f"/v0/agents/{record['agentId']}")).json()
    assert detail["lifecycle"] == {"build": NOTHING, "start": NOTHING}
    assert json.loads(detail["agent"]["lifecycleJson"]) == detail["lifecycle"]


async def test_a_retry_builds_and_starts(record: dict[str, Any], agent: httpx.AsyncClient) -> None:
    await write(agent, "echo for __AGENT_HOST__", "echo up; exec sleep 1000")
    answer = await agent.post("/v0/scripts/retry")
    assert (answer.status_code, answer.json()) == (200, {"success": True, "message": "Scripts launched"})
    scripts = await wait_for_build(agent, "success")
    assert (scripts["build"]["exitCode"], scripts["start"]["state"]) == (0, "running")
    assert scripts["build"]["finishedAt"].endswith("Z")
    logs = (await agent.get("/v0/logs")).json()["logs"]
    assert f"[script/build] for {agent.headers['Host']}" in logs
    assert "[script/start] up" in logs
    detail = (await agent.get(f"/v0/agents/{record['agentId']}")).json()
    assert detail["lifecycle"]["build"]["state"] == "success"


async def test_a_build_that_fails_is_told(agent: httpx.AsyncClient) -> None:
    await write(agent, "exit 3", "exec sleep 1000")
    await agent.post("/v0/scripts/retry")
    scripts = await wait_for_build(agent, "failed")
    assert (scripts["build"]["exitCode"], scripts["build"]["reason"]) == (3, "It ended with code 3")
    assert scripts["start"]["state"] == "failed"


async def test_without_a_container_there_is_nothing_to_launch(
    server: RunningServer, record: dict[str, Any], agent: httpx.AsyncClient
) -> None:
    await server.roost.drivers.runtime.stop(record["agentId"], grace=0)  # like a crash of the container
    answer = await agent.post("/v0/scripts/retry")
    assert (answer.status_code, answer.json()) == (500, {"error": "Script launch failed"})
