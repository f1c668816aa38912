"""Operations on agents over HTTP: shapes, statuses and exact messages of the contract."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from roost.identity.caller import Plan
from tests.support.server import RunningServer, running


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[RunningServer]:
    async with running(tmp_path / "data") as server:
        yield server


async def test_create_show_list_delete(server: RunningServer) -> None:
    api = server.client(server.key())
    created = await api.post("/v0/agents", json={"name": "Ada", "emoji": "🦉", "description": "counts"})
    assert created.status_code == 201, created.text
    agent = created.json()["agent"]
    assert agent["name"] == "Ada"
    assert agent["status"] == "running"
    assert agent["engine"] == "fake"
    listed = (await api.get("/v0/agents")).json()
    assert [one["agentId"] for one in listed["agents"]] == [agent["agentId"]]
    assert listed["agentLimit"] == 20
    assert listed["agents"][0]["gatewayToken"] is None
    detail = (await api.get(f"/v0/agents/{agent['agentId']}")).json()
    assert detail["agent"] == agent
    assert detail["processStatus"] == "running"
    for part in ("skills", "secrets", "snapshots", "portForwarding", "missing", "faults"):
        assert detail[part] == []
    assert detail.keys() - {"processId", "lifecycle"} == {
        *("agent", "processStatus", "skills", "secrets", "snapshots", "portForwarding", "template", "missing", "faults")
    }
    assert (await api.delete(f"/v0/agents/{agent['agentId']}")).json()["success"] is True
    assert (await api.get(f"/v0/agents/{agent['agentId']}")).status_code == 404
    assert (await api.get("/v0/agents")).json()["agents"] == []


async def test_a_gateway_that_does_not_start_answers_with_its_agent(server: RunningServer) -> None:
    api = server.client(server.key())
    answer = await api.post("/v0/agents", json={"name": "fail-start"})
    assert answer.status_code == 500
    body = answer.json()
    assert body["error"] == "Gateway failed to start"
    assert body["agent"]["status"] == "failed"
    assert "exited with code" in body["agent"]["statusReason"]
    listed = (await api.get("/v0/agents")).json()["agents"]
    assert [one["agentId"] for one in listed] == [body["agent"]["agentId"]]
    again = await api.post(f"/v0/agents/{body['agent']['agentId']}/restart")
    assert (again.status_code, again.json()) == (500, {"error": "Restart failed"})


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": ""},
        {"name": "   "},
        {"name": "x" * 101},
        {"name": "a\u202eb"},
        {"name": "<script>"},
        {"name": 7},
        {"name": None},
        {"name": "a", "engine": "none"},
        {"name": "a", "skillCids": ["x"] * 11},
        {"name": "a", "skillCids": "x"},
        {"name": "a", "channels": {"sms": {"botToken": "x"}}},
        {"name": "a", "channels": {"telegram": {}}},
        {"name": "a", "channels": []},
        {"name": "a", "description": "x" * 10_001},
        [],
        "text",
        None,
    ],
)
async def test_a_bad_order_is_400_with_one_field(server: RunningServer, body: object) -> None:
    answer = await server.client(server.key()).post("/v0/agents", json=body)
    assert answer.status_code == 400, answer.text
    assert list(answer.json()) == ["error"]
    assert isinstance(answer.json()["error"], str)


async def test_unknown_secrets_are_404(server: RunningServer) -> None:
    api = server.client(server.key())
    assert (await api.post("/v0/agents", json={"name": "a", "secretIds": ["x"]})).status_code == 404


async def test_channels_need_a_paid_plan(server: RunningServer) -> None:
    api = server.client(server.key("free", Plan.FREE))
    answer = await api.post("/v0/agents", json={"name": "a", "channels": {"telegram": {"botToken": "1:x"}}})
    assert answer.status_code == 403


async def test_fifty_creates_at_once_stay_within_the_quota(tmp_path: Path) -> None:
    async with running(tmp_path / "data", ROOST_QUOTA_FREE="3") as server:
        api = server.client(server.key("free", Plan.FREE))
        answers = await asyncio.gather(*(api.post("/v0/agents", json={"name": f"n{i}"}) for i in range(50)))
        refused = [answer for answer in answers if answer.status_code == 403]
        assert sum(answer.status_code == 201 for answer in answers) == 3
        assert len(refused) == 47
        assert {answer.json()["error"] for answer in refused} == {"Agent limit reached"}


async def test_a_restart_gives_a_new_process_and_knows_its_versions(server: RunningServer) -> None:
    api = server.client(server.key())
    agent = (await api.post("/v0/agents", json={"name": "a"})).json()["agent"]
    path = f"/v0/agents/{agent['agentId']}"
    before = (await api.get(path)).json()["processId"]
    answer = await api.post(f"{path}/restart")
    assert answer.status_code == 200
    assert answer.json()["previousProcessId"] == before
    assert (await api.get(path)).json()["processId"] != before
    for body in ({"version": "0.0.0"}, {"agentVersion": "../../x"}):
        refused = await api.post(f"{path}/restart", json=body)
        assert (refused.status_code, refused.json()) == (400, {"error": "Invalid version"})
    same = await api.post(f"{path}/restart", json={"version": agent["agentVersion"]})
    assert same.status_code == 200


async def test_engines_are_listed_with_what_they_can_do(server: RunningServer) -> None:
    answer = await server.client(server.key()).get("/v0/agents/engines")
    (fake,) = answer.json()["engines"]
    assert (fake["id"], fake["label"]) == ("fake", "Fake")
    assert fake["abilities"] == ["channels", "chat", "configuration", "devices", "skills", "tasks"]
    assert fake["channels"]["telegram"] == {"pairingCodes": False, "reportsMessages": True}
    assert set(fake["channels"]) == {"discord", "slack", "telegram"}


async def test_model_providers_are_listed_with_the_secrets_of_their_keys(server: RunningServer) -> None:
    rows = (await server.client(server.key()).get("/v0/model-providers")).json()["providers"]
    anthropic = {"id": "anthropic", "label": "Anthropic", "secret": "ANTHROPIC_API_KEY", "keyPrefixes": ["sk-ant-"]}
    assert anthropic in rows
    assert len({row["secret"] for row in rows}) == len(rows) == 10


async def test_the_gateway_token_is_read_and_rotated(server: RunningServer) -> None:
    api = server.client(server.key())
    agent = (await api.post("/v0/agents", json={"name": "a"})).json()["agent"]
    path = f"/v0/agents/{agent['agentId']}/gateway-token"
    assert (await api.get(path)).json()["token"] == agent["gatewayToken"]
    own = server.agent_client(agent)
    assert (await own.get("/v0/logs")).status_code == 200
    new = (await api.post(f"{path}/rotate")).json()["token"]
    assert new != agent["gatewayToken"]
    assert (await own.get("/v0/logs")).status_code == 401
    assert (await own.get("/health")).status_code == 401
    assert (await server.agent_client(agent | {"gatewayToken": new}).get("/v0/logs")).status_code == 200


async def test_logs_are_one_string_of_the_last_hundred_lines(server: RunningServer) -> None:
    api = server.client(server.key())
    agent = (await api.post("/v0/agents", json={"name": "a"})).json()["agent"]
    logs = (await api.get(f"/v0/agents/{agent['agentId']}/logs")).json()["logs"]
    assert isinstance(logs, str)
    assert 0 < len(logs.splitlines()) <= 100


async def test_the_agents_address_serves_its_routes_with_and_without_the_prefix(server: RunningServer) -> None:
    api = server.client(server.key())
    agent = (await api.post("/v0/agents", json={"name": "a"})).json()["agent"]
    own = server.agent_client(agent)
    for path in (f"/v0/agents/{agent['agentId']}/console/exec", "/v0/console/exec"):
        answer = await own.post(path, json={"command": "echo hi"})
        assert answer.json()["stdout"] == "hi\n"
    assert (await own.get(f"/v0/agents/{agent['agentId']}")).status_code == 200
    for method, path in (
        ("DELETE", f"/v0/agents/{agent['agentId']}"),
        ("GET", f"/v0/agents/{agent['agentId']}/gateway-token"),
        ("POST", f"/v0/agents/{agent['agentId']}/gateway-token/rotate"),
    ):
        assert (await own.request(method, path)).status_code == 401
    other = (await api.post("/v0/agents", json={"name": "b"})).json()["agent"]
    assert (await own.get(f"/v0/agents/{other['agentId']}/logs")).status_code == 401
