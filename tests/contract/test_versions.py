"""Versions and updates over HTTP: shapes, statuses, exact messages."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2 as httpx
import pytest

from roost.drivers.engine.fake.driver import BROKEN
from tests.support.server import RunningServer, running

VERSIONS = ["1.1.0", BROKEN, "1.0.0"]


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    async with running(tmp_path_factory.mktemp("v") / "data") as server:
        yield server


@pytest.fixture
async def agent(server: RunningServer) -> AsyncIterator[httpx.AsyncClient]:
    """Return a client of the own address of an agent at 1.0.0."""
    api = server.client(server.key())
    made = (await api.post("/v0/agents", json={"name": "a"})).json()["agent"]
    own = server.agent_client(made)
    if made["agentVersion"] != "1.0.0":
        assert (await own.post("/v0/restart", json={"version": "1.0.0"})).status_code == 200
    yield own
    await api.delete(f"/v0/agents/{made['agentId']}")


async def test_available_versions_are_listed(server: RunningServer, agent: httpx.AsyncClient) -> None:
    found = (await agent.get("/v0/available-agent-versions")).json()
    wanted = {"currentVersion": "1.0.0", "availableVersions": VERSIONS, "engine": "fake"}
    assert found == {**wanted, "availableVersionsPerEngine": {"fake": VERSIONS}}
    bare = await server.client(server.key()).get("/v0/available-agent-versions")
    assert bare.json() == found
    assert (await server.client().get("/v0/available-agent-versions")).status_code == 401
    checked = (await agent.get("/v0/update")).json()
    assert checked == {"currentVersion": "1.0.0", "latestVersion": "1.1.0", "updateAvailable": True}


async def test_a_version_that_does_not_exist_is_400(agent: httpx.AsyncClient) -> None:
    for path, field in (("restart", "version"), ("restart", "agentVersion"), ("update", "tag")):
        for version in ("", "9.9.9", "../1.0.0", "1.0.0; id", "-1", "next", "x" * 65, 7, True, [], {"a": 1}):
            answer = await agent.post(f"/v0/{path}", json={field: version})
            assert (answer.status_code, answer.json()) == (400, {"error": "Invalid version"}), version
    for path in ("restart", "update"):
        for content in (b"{", b"[]", b"7"):
            answer = await agent.post(f"/v0/{path}", content=content, headers={"Content-Type": "application/json"})
            assert (answer.status_code, answer.json()) == (400, {"error": "Invalid version"}), content
            assert "JSON" in json.loads(answer.headers["X-Error-Detail"])


@pytest.mark.parametrize("body", [b"", b"null", b"{}", b'{"tag": null}', b'{"tag": "latest"}', b'{"tag": "1.1.0"}'])
async def test_update_keeps_the_files_and_the_state(agent: httpx.AsyncClient, body: bytes) -> None:
    await _remember(agent)
    headers = {"Content-Type": "application/json"} if body else {}
    answer = await agent.post("/v0/update", content=body, headers=headers)
    assert answer.status_code == 200, answer.text
    told = answer.json()
    output = told.pop("output")
    assert told == {"success": True, "previousVersion": "1.0.0", "newVersion": "1.1.0"}
    assert output == "Updated from 1.0.0 to 1.1.0"
    assert (await _record(agent))["agentVersion"] == "1.1.0"
    assert await _remembered(agent) == "kept"
    assert (await agent.get("/v0/update")).json()["updateAvailable"] is False


async def test_an_update_that_does_not_hold(agent: httpx.AsyncClient) -> None:
    await _remember(agent)
    told = (await agent.post("/v0/update", json={"tag": BROKEN})).json()
    assert (told["success"], told["previousVersion"], told["newVersion"]) == (False, "1.0.0", "1.0.0")
    assert told["output"].startswith(f"{BROKEN} did not work: The gateway exited with code 3")
    record = await _record(agent)
    assert (record["agentVersion"], record["status"], record["statusReason"]) == ("1.0.0", "running", None)
    assert await _remembered(agent) == "kept"
    assert (await agent.get("/health/detailed")).json() == {"version": "1.0.0"}


async def test_a_restart_at_a_version_that_does_not_start(agent: httpx.AsyncClient) -> None:
    answer = await agent.post("/v0/restart", json={"version": BROKEN})
    assert (answer.status_code, answer.json()) == (500, {"error": "Restart failed"})
    record = await _record(agent)
    assert (record["agentVersion"], record["status"]) == (BROKEN, "failed")
    assert "exited with code 3" in record["statusReason"]


async def _record(agent: httpx.AsyncClient) -> dict[str, Any]:
    host = agent.headers["Host"].split(".")[0]
    return (await agent.get(f"/v0/agents/{host}")).json()["agent"]


async def _remember(agent: httpx.AsyncClient) -> None:
    command = "printf kept > $HOME/.roost/fake/memory"
    assert (await agent.post("/v0/console/exec", json={"command": command})).json()["exitCode"] == 0


async def _remembered(agent: httpx.AsyncClient) -> str:
    answer = await agent.post("/v0/console/exec", json={"command": "cat $HOME/.roost/fake/memory"})
    return answer.json()["stdout"]
