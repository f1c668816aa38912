"""The state of the deployment over HTTP: what the operator sees, and that nobody else does."""

from collections.abc import AsyncIterator

import pytest

from roost import __version__
from tests.contract.test_sessions import signed_in
from tests.support.server import RunningServer, running

PATHS = ["/v0/system", "/v0/system/checks", "/v0/system/engines"]


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    folder = tmp_path_factory.mktemp("d") / "data"
    async with running(folder, ROOST_ENGINES=str(folder.parent / "engines")) as server:
        yield server


async def test_the_operator_sees_versions_health_servers_and_work(server: RunningServer) -> None:
    answer = await server.client(server.key("default")).get("/v0/system")
    assert answer.status_code == 200
    found = answer.json()
    assert (found["software"]["roost"], found["software"]["database"]) == (__version__, "SQLite")
    assert set(found["checks"]) == {"database", "disk", "containers", "storage"}
    assert set(found["checks"].values()) == {"ok"}
    (host,) = found["hosts"]
    assert (host["isRunning"], host["isThis"]) == (True, True)
    assert set(found["operations"]) == {"pending", "paused", "running", "failing"}
    assert 0 < found["disk"]["free"] < found["disk"]["total"]
    assert 0 < found["memory"]["server"] < found["memory"]["available"] < found["memory"]["total"]
    assert str(server.roost.core.settings.data) not in answer.text


async def test_the_checks_are_those_of_the_doctor(server: RunningServer) -> None:
    checks = (await server.client(server.key("default")).get("/v0/system/checks")).json()["checks"]
    found = {check["part"]: check for check in checks}
    assert found["runtime bwrap"] == {"part": "runtime bwrap", "status": "ok", "detail": "containers start"}
    assert found["database"]["detail"] == "SQLite in the data folder"
    assert found["engines"]["status"] == "fail"
    assert found["engine openclaw"]["detail"].startswith("not installed; run `roost engines install openclaw`")


async def test_engines_show_which_agents_are_behind(server: RunningServer) -> None:
    operator, other = server.client(server.key("default")), server.client(server.key("other"))
    old = (await operator.post("/v0/agents", json={"name": "Old"})).json()["agent"]
    new = (await operator.post("/v0/agents", json={"name": "New"})).json()["agent"]
    foreign = (await other.post("/v0/agents", json={"name": "Foreign"})).json()["agent"]
    (engine,) = (await operator.get("/v0/system/engines")).json()["engines"]
    assert (engine["engine"], engine["installedVersions"]) == ("fake", ["1.0.0"])
    assert engine["latestVersion"] == engine["availableVersions"][0] != "1.0.0"
    behind = {one["agentId"]: one["agentVersion"] for one in engine["outdatedAgents"]}
    assert behind == {old["agentId"]: "1.0.0", new["agentId"]: "1.0.0"}
    assert foreign["agentId"] not in behind
    await operator.post(f"/v0/agents/{new['agentId']}/update")
    (engine,) = (await operator.get("/v0/system/engines")).json()["engines"]
    assert [one["name"] for one in engine["outdatedAgents"]] == ["Old"]


@pytest.mark.parametrize("path", PATHS)
async def test_others_are_refused(server: RunningServer, path: str) -> None:
    keys = (server.key("other"), server.key("default", scopes=frozenset({"org:read", "org:write"})))
    for key in keys:
        answer = await server.client(key).get(path)
        assert (answer.status_code, answer.json()) == (403, {"error": "Permission denied"})
    browser = await signed_in(server, server.key("default"), "editor")
    assert (await browser.send("GET", path)).status_code == 403
    assert (await server.client().get(path)).status_code == 401


async def test_an_owner_in_a_browser_is_the_operator_and_no_agent_is(server: RunningServer) -> None:
    browser = await signed_in(server, server.key("default"))
    assert (await browser.send("GET", "/v0/system")).status_code == 200
    agent = (await server.client(server.key("default")).get("/v0/agents")).json()["agents"][0]
    detail = (await server.client(server.key("default")).get(f"/v0/agents/{agent['agentId']}")).json()["agent"]
    assert (await server.agent_client(detail).get("/v0/system")).status_code == 404
