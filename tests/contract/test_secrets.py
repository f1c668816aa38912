"""Secrets over HTTP: shapes, statuses, exact messages, and the agent's environment (B1-B3, B7-B9, E1-E4)."""

import asyncio
import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from roost.drivers.engine.contract import GatewayPlan, GatewaySetup
from roost.drivers.engine.fake.driver import FakeEngine
from tests.contract.endpoints import CONTRACT, needs_contract, routes
from tests.support.server import RunningServer, running

UNKNOWN = (404, {"error": "Secret not found"})
RECORD = {"id", "userId", "name", "type", "createdAt", "updatedAt"}


@pytest.fixture
def api(server: RunningServer, request: pytest.FixtureRequest) -> httpx.AsyncClient:
    """Return a client of a tenant of this test only."""
    return server.client(server.key(request.node.name))


async def create(api: httpx.AsyncClient, name: str, value: str = "hush-hush", **body: Any) -> dict[str, Any]:
    answer = await api.post("/v0/secrets", json={"name": name, "value": value, **body})
    assert answer.status_code == 201, answer.text
    return answer.json()["secret"]


async def agent(api: httpx.AsyncClient, *secrets: dict[str, Any]) -> dict[str, Any]:
    answer = await api.post("/v0/agents", json={"name": "a", "secretIds": [secret["id"] for secret in secrets]})
    assert answer.status_code == 201, answer.text
    return answer.json()["agent"]


async def attach(api: httpx.AsyncClient, made: dict[str, Any], *secrets: dict[str, Any]) -> httpx.Response:
    ids = {"secretIds": [secret["id"] for secret in secrets]}
    return await api.post(f"/v0/agents/{made['agentId']}/secrets", json=ids)


async def gateway_sees(api: httpx.AsyncClient, made: dict[str, Any]) -> dict[str, str]:
    """Return the environment of the gateway's process, from the kernel."""
    pid = (await api.get(f"/v0/agents/{made['agentId']}")).json()["processId"]
    ran = await run(api, made, f"cat /proc/{pid}/environ")
    return dict(entry.split("=", 1) for entry in ran.split("\0") if "=" in entry)


async def run(api: httpx.AsyncClient, made: dict[str, Any], command: str) -> str:
    answer = await api.post(f"/v0/agents/{made['agentId']}/console/exec", json={"command": command})
    assert answer.status_code == 200, answer.text
    return answer.json()["stdout"]


@needs_contract
def test_the_contracts_table_is_whole() -> None:
    table = json.loads((CONTRACT / "endpoints.json").read_text())
    wanted = [(row["method"], row["path"]) for row in table if row.get("section") == "Secrets"]
    assert len(wanted) == 6
    assert set(wanted) <= routes().keys()


def status_and_body(answer: httpx.Response) -> tuple[int, Any]:
    return answer.status_code, answer.json()


async def test_a_secret_comes_and_goes_and_is_never_shown(api: httpx.AsyncClient) -> None:
    answer = await api.post("/v0/secrets", json={"name": "MY_SECRET", "value": "hush-hush"})
    assert answer.status_code == 201
    assert answer.json()["success"] is True
    secret = answer.json()["secret"]
    assert secret.keys() == RECORD
    assert (secret["name"], secret["type"]) == ("MY_SECRET", "secret")
    variable = await create(api, "MY_VARIABLE", "shown", type="variable")
    assert variable.keys() == RECORD
    listed = await api.get("/v0/secrets")
    assert listed.json() == {
        "secrets": [{**secret, "agents": []}, {**variable, "agents": [], "value": "shown"}],
        "secretLimit": 100,
    }
    updated = await api.put(f"/v0/secrets/{secret['id']}", json={"value": "hush-again"})
    assert updated.status_code == 200
    assert updated.json()["secret"] == {**secret, "updatedAt": updated.json()["secret"]["updatedAt"]}
    assert updated.json()["secret"]["updatedAt"] > secret["updatedAt"]
    assert status_and_body(await api.delete(f"/v0/secrets/{secret['id']}")) == (200, {"success": True})
    assert status_and_body(await api.delete(f"/v0/secrets/{secret['id']}")) == UNKNOWN
    assert not any("hush" in one.text for one in (answer, listed, updated))


@pytest.mark.parametrize(
    "body",
    [
        {"name": "", "value": "hush"},
        {"value": "hush"},
        {"name": "A", "value": ""},
        {"name": "A"},
        {"name": "http_proxy", "value": "hush"},
        {"name": "A=B", "value": "hush"},
        {"name": "A\nB", "value": "hush"},
        {"name": "X" * 129, "value": "hush"},
        {"name": "LD_PRELOAD", "value": "hush"},
        {"name": "NODE_OPTIONS", "value": "hush"},
        {"name": "BASH_ENV", "value": "hush"},
        {"name": "PATH", "value": "hush"},
        {"name": "A", "value": "hush\0"},
        {"name": "A", "value": "hush" + "x" * 65_536},
        {"name": "A", "value": "hush", "type": "hush"},
        {"name": "A", "value": ["hush"]},
        {"name": 7, "value": "hush"},
    ],
)
async def test_malformed_secrets_are_refused_without_their_value(api: httpx.AsyncClient, body: dict[str, Any]) -> None:
    answer = await api.post("/v0/secrets", json=body)
    assert answer.status_code == 400, answer.text
    assert list(answer.json()) == ["error"]
    assert "hush" not in answer.text.replace("'secret' or 'variable'", "")
    assert (await api.get("/v0/secrets")).json()["secrets"] == []


async def test_each_name_of_a_variable_is_taken_and_a_shells_limits_are_told(api: httpx.AsyncClient) -> None:
    made = [await create(api, name) for name in ("lower_case", "my-key", "a.b")]
    agent = (await api.post("/v0/agents", json={"name": "Ada"})).json()["agent"]["agentId"]
    path = f"/v0/agents/{agent}/secrets"
    assert (await api.post(path, json={"secretIds": [made[0]["id"]]})).json() == {"success": True, "attached": 1}
    answer = (await api.post(path, json={"secretIds": [one["id"] for one in made]})).json()
    assert answer["attached"] == 2
    assert [warning.split()[0] for warning in answer["warnings"]] == ["my-key", "a.b"]
    assert [row["name"] for row in (await api.get(path)).json()["secrets"]] == ["a.b", "lower_case", "my-key"]


async def test_a_name_is_there_once(api: httpx.AsyncClient) -> None:
    body = {"name": "TWICE", "value": "x"}
    answers = await asyncio.gather(*(api.post("/v0/secrets", json=body) for _ in range(6)))
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * 5
    assert [answer.json() for answer in answers if answer.status_code == 409] == [
        {"error": "Duplicate secret name"}
    ] * 5


async def test_fields_that_are_not_a_callers_to_set_are_left(api: httpx.AsyncClient) -> None:
    made = await create(api, "A", id="mine", userId="other", version=7, agents=["x"])
    assert made["id"] != "mine"
    assert made["userId"] != "other"
    await api.put(f"/v0/secrets/{made['id']}", json={"value": "x", "name": "PATH", "type": "variable"})
    ((left,),) = ((await api.get("/v0/secrets")).json()["secrets"],)
    assert (left["name"], left["type"], "value" in left) == ("A", "secret", False)


async def test_a_free_tenant_has_fewer(server: RunningServer) -> None:
    free = server.client(server.key("frugal", None))
    for number in range(10):
        await create(free, f"N{number}")
    answer = await free.post("/v0/secrets", json={"name": "MORE", "value": "x"})
    assert status_and_body(answer) == (403, {"error": "Secret limit reached"})
    assert (await free.get("/v0/secrets")).json()["secretLimit"] == 10


async def test_an_agent_has_its_secrets_from_the_first_moment_and_new_ones_from_its_next(
    api: httpx.AsyncClient,
) -> None:
    secret, variable = await create(api, "FIRST", "hush-1"), await create(api, "SHOWN", "grüße\n2", type="variable")
    key = await create(api, "OPENAI_API_KEY", "sk-hush")
    made = await agent(api, secret, variable, key)
    path = f"/v0/agents/{made['agentId']}/secrets"
    attached = (await api.get(path)).json()["secrets"]
    assert {one["name"]: one["synced"] for one in attached} == {"FIRST": True, "OPENAI_API_KEY": True, "SHOWN": True}
    assert attached[0].keys() == RECORD - {"userId"} | {"synced"}
    assert (await api.get(f"/v0/agents/{made['agentId']}")).json()["secrets"] == attached
    seen = await gateway_sees(api, made)
    assert (seen["FIRST"], seen["SHOWN"]) == ("hush-1", "grüße\n2")
    assert "OPENAI_API_KEY" not in seen

    await api.put(f"/v0/secrets/{secret['id']}", json={"value": "hush-2"})
    later = await create(api, "LATER", "x")
    assert status_and_body(await attach(api, made, later, variable)) == (200, {"success": True, "attached": 1})
    found = {one["name"]: one["synced"] for one in (await api.get(path)).json()["secrets"]}
    assert found == {"FIRST": False, "LATER": False, "OPENAI_API_KEY": True, "SHOWN": True}
    assert await gateway_sees(api, made) == seen
    assert await run(api, made, "echo $FIRST $LATER $OPENAI_API_KEY") == "hush-2 x\n"
    assert (await api.post(f"/v0/agents/{made['agentId']}/restart")).status_code == 200
    assert all(one["synced"] for one in (await api.get(path)).json()["secrets"])
    seen = await gateway_sees(api, made)
    assert (seen["FIRST"], seen["LATER"]) == ("hush-2", "x")

    assert status_and_body(await api.delete(f"{path}/{later['id']}")) == (200, {"success": True})
    assert status_and_body(await api.delete(f"{path}/{later['id']}")) == UNKNOWN
    assert (await api.post(f"/v0/agents/{made['agentId']}/restart")).status_code == 200
    assert "LATER" not in await gateway_sees(api, made)
    having = {one["name"]: one["agents"] for one in (await api.get("/v0/secrets")).json()["secrets"]}
    assert having["FIRST"] == [{"agentId": made["agentId"], "name": "a"}]
    assert having["LATER"] == []


async def test_a_secret_that_is_in_use_stays_until_the_agent_goes(api: httpx.AsyncClient) -> None:
    secret = await create(api, "USED")
    made = await agent(api, secret)
    in_use = (409, {"error": "Secret is attached to an agent"})
    assert status_and_body(await api.delete(f"/v0/secrets/{secret['id']}")) == in_use
    assert (await api.delete(f"/v0/agents/{made['agentId']}")).status_code == 200
    assert status_and_body(await api.delete(f"/v0/secrets/{secret['id']}")) == (200, {"success": True})


async def test_two_credentials_of_a_provider_are_a_conflict(api: httpx.AsyncClient) -> None:
    conflict = (409, {"error": "Conflicting secrets"})
    key, token = await create(api, "ANTHROPIC_API_KEY"), await create(api, "ANTHROPIC_OAUTH_TOKEN")
    general = [await create(api, "GH_TOKEN"), await create(api, "GITHUB_TOKEN")]
    refused = await api.post("/v0/agents", json={"name": "a", "secretIds": [key["id"], token["id"]]})
    assert status_and_body(refused) == conflict
    assert (await api.get("/v0/agents")).json()["agents"] == []
    made = await agent(api, key, *general)
    assert status_and_body(await attach(api, made, token)) == conflict
    assert len((await api.get(f"/v0/agents/{made['agentId']}/secrets")).json()["secrets"]) == 3


async def test_of_another_tenant_there_is_nothing(server: RunningServer, api: httpx.AsyncClient) -> None:
    theirs = await create(server.client(server.key("neighbour")), "THEIRS")
    made, own = await agent(api), await create(api, "OWN")
    assert status_and_body(await api.put(f"/v0/secrets/{theirs['id']}", json={"value": "x"})) == UNKNOWN
    assert status_and_body(await api.delete(f"/v0/secrets/{theirs['id']}")) == UNKNOWN
    assert status_and_body(await attach(api, made, own, theirs)) == UNKNOWN
    refused = await api.post("/v0/agents", json={"name": "b", "secretIds": [theirs["id"]]})
    assert status_and_body(refused) == UNKNOWN
    assert len((await api.get("/v0/agents")).json()["agents"]) == 1
    assert (await api.get(f"/v0/agents/{made['agentId']}/secrets")).json() == {"secrets": []}


async def test_secret_of_another_agent_is_not_found(api: httpx.AsyncClient) -> None:
    secret = await create(api, "ELSEWHERE")
    await agent(api, secret)
    made = await agent(api)
    assert status_and_body(await api.delete(f"/v0/agents/{made['agentId']}/secrets/{secret['id']}")) == UNKNOWN


@pytest.mark.parametrize("ids", [None, [], "x", ["x" * 300], [7], ["x\0"]])
async def test_malformed_lists_of_ids_are_refused(api: httpx.AsyncClient, ids: Any) -> None:
    made = (await api.get("/v0/agents")).json()["agents"]
    path = f"/v0/agents/{(made[0] if made else await agent(api))['agentId']}/secrets"
    answer = await api.post(path, json={} if ids is None else {"secretIds": ids})
    assert answer.status_code == 400, answer.text


async def test_the_holder_of_the_gateway_token_attaches_and_detaches(
    server: RunningServer, api: httpx.AsyncClient
) -> None:
    secret, made = await create(api, "A"), await agent(api)
    its_own = server.agent_client(made)
    assert status_and_body(await its_own.post("/v0/secrets", json={"secretIds": [secret["id"]]})) == (
        200,
        {"success": True, "attached": 1},
    )
    assert [one["name"] for one in (await its_own.get("/v0/secrets")).json()["secrets"]] == ["A"]
    assert status_and_body(await its_own.delete(f"/v0/secrets/{secret['id']}")) == (200, {"success": True})
    assert (await api.get("/v0/secrets")).json()["secrets"][0]["agents"] == []


class LeakyEngine(FakeEngine):
    """Engine whose gateway prints a secret, in colours, and fails."""

    def plan(self, version: str, setup: GatewaySetup) -> GatewayPlan:
        said = 'echo "got \x1b[1m$TOLD\x1b[0m and $TOLD"; exit 3'
        return replace(super().plan(version, setup), argv=["/bin/sh", "-c", said])


async def test_secret_told_by_a_failing_gateway_stays_inside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with running(tmp_path / "data", engines=[LeakyEngine()]) as server:
        api = server.client(server.key())
        secret = await create(api, "TOLD", "hush-hush")
        failed = await api.post("/v0/agents", json={"name": "a", "secretIds": [secret["id"]]})
        assert failed.status_code == 500
        made = failed.json()["agent"]
        path = f"/v0/agents/{made['agentId']}"
        answers = [failed, await api.get(path), await api.get(f"{path}/logs"), await api.get("/v0/agents")]
        assert "got [redacted] and [redacted]" in made["statusReason"]
        assert not [answer.text for answer in answers if "hush" in answer.text]
        printed = capsys.readouterr()
        assert "hush" not in printed.out + printed.err
        assert (await api.get(f"{path}/secrets")).json()["secrets"][0]["synced"] is False


async def test_swapped_values_start_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with running(tmp_path / "data") as server:
        api = server.client(server.key())
        one, two = await create(api, "ONE", "hush-1"), await create(api, "TWO", "hush-2")
        made = await agent(api, one, two)
        with closing(sqlite3.connect(tmp_path / "data" / "roost.db")) as database:
            sealed = dict(database.execute("SELECT id, sealed FROM secrets"))
            for at, source in ((one, two), (two, one)):
                database.execute("UPDATE secrets SET sealed = ? WHERE id = ?", (sealed[source["id"]], at["id"]))
            database.commit()
        answer = await api.post(f"/v0/agents/{made['agentId']}/restart")
        assert status_and_body(answer) == (500, {"error": "Restart failed"})
        failed = (await api.get(f"/v0/agents/{made['agentId']}")).json()["agent"]
        assert (failed["status"], failed["statusReason"]) == (
            "failed",
            "The secret ONE could not be opened; set its value again",
        )
        assert "secret.unseal_failed" in capsys.readouterr().out
        for secret in (one, two):
            assert (await api.put(f"/v0/secrets/{secret['id']}", json={"value": "new"})).status_code == 200
        assert (await api.post(f"/v0/agents/{made['agentId']}/restart")).status_code == 200
        assert (await gateway_sees(api, made))["ONE"] == "new"


async def test_without_its_key_a_server_keeps_nothing_and_says_so(tmp_path: Path) -> None:
    refused = (503, {"error": "Secrets not configured"})
    async with running(tmp_path / "data") as server:
        api, key = server.client(server.key()), server.roost.core.settings.kek_file
        secret, kept = await create(api, "A", "old"), key.read_text()
        made = await agent(api, secret)
        for content in (None, "ab" * 32 + "\n", "damaged"):
            key.unlink(missing_ok=True)
            if content is not None:
                key.write_text(content)
            assert status_and_body(await api.post("/v0/secrets", json={"name": "B", "value": "x"})) == refused
            assert status_and_body(await api.put(f"/v0/secrets/{secret['id']}", json={"value": "x"})) == refused
            assert (await api.get("/v0/secrets")).status_code == 200
            assert await run(api, made, "echo $A") == "old\n"
        key.write_text(kept)
        await create(api, "B")
