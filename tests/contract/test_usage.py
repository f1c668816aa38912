"""Usage reports over HTTP: who sees whose, and periods."""

from typing import Any

import httpx2 as httpx

from roost.core import clock
from tests.support.server import RunningServer

BODY = {"model": "scripted", "messages": [{"role": "user", "content": "Good morning"}]}


async def _use(client: httpx.AsyncClient) -> None:
    assert (await client.post("/v0/llm/v1/chat/completions", json=BODY)).status_code == 200


async def _report(client: httpx.AsyncClient, path: str = "/v0/usage", **query: str) -> dict[str, Any]:
    answer = await client.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_usage_is_summed_by_agent_and_tenant(server: RunningServer, tenant: str) -> None:
    owner, other = server.client(server.key(tenant)), server.client(server.key(f"{tenant}-other"))
    ada, bob = [(await owner.post("/v0/agents", json={"name": name})).json()["agent"] for name in ("ada", "bob")]
    own = server.agent_client(ada)
    for client in (own, own, server.agent_client(bob), owner):
        await _use(client)

    report = await _report(owner)
    assert report["total"]["requests"] == 4
    assert report["total"]["promptTokens"] > 0
    assert len(report["days"]) == 30
    today = clock.utc_now().date().isoformat()
    assert report["days"][-1] == {"day": today, **report["total"]}
    assert [row["model"] for row in report["models"]] == ["scripted/scripted"]
    counted = {row["agentId"]: row["requests"] for row in report["agents"]}
    assert counted == {ada["agentId"]: 2, bob["agentId"]: 1, None: 1}

    mine = await _report(own)
    assert mine == await _report(owner, agentId=ada["agentId"])
    path = f"/v0/agents/{ada['agentId']}/usage"
    assert mine == await _report(owner, path)
    assert mine["total"]["requests"] == 2
    assert (await own.get(f"/v0/agents/{bob['agentId']}/usage")).status_code == 401
    assert (await other.get(path)).status_code == 401
    assert (await _report(other, agentId=ada["agentId"]))["total"]["requests"] == 0
    assert (await server.client().get("/v0/usage")).status_code == 401

    past = await _report(owner, **{"from": "2025-01-01", "to": "2025-01-02"})
    assert [row["requests"] for row in past["days"]] == [0, 0]
    refused = await owner.get("/v0/usage?from=2025-01-01&to=2026-12-31")
    assert (refused.status_code, refused.json()["error"][:10]) == (400, "The period")
    assert (await owner.get("/v0/usage?from=2026-02-30")).status_code == 400

    for agent in (ada, bob):
        await owner.delete(f"/v0/agents/{agent['agentId']}")
    assert (await _report(owner))["total"] == report["total"]


async def test_file_totals_count_each_network(server: RunningServer, tenant: str) -> None:
    client = server.client(server.key(tenant), "localhost")
    for name, network in (("a", "public"), ("bc", "public"), ("def", "private")):
        await client.post("/v3/files", files={"file": (name, name.encode()), "network": (None, network)})
    totals = (await client.get("/v3/files/totals")).json()["data"]
    assert totals == {"public": {"files": 2, "bytes": 3}, "private": {"files": 1, "bytes": 3}}


async def test_memory_of_agents(server: RunningServer, tenant: str) -> None:
    owner, other = server.client(server.key(tenant)), server.client(server.key(f"{tenant}-other"))
    agent = (await owner.post("/v0/agents", json={"name": "ada"})).json()["agent"]
    (measured,) = (await owner.get("/v0/agents/memory")).json()["agents"]
    assert measured["agentId"] == agent["agentId"]
    assert measured["memoryBytes"] > 1_000_000
    assert (await other.get("/v0/agents/memory")).json() == {"agents": []}
    await owner.delete(f"/v0/agents/{agent['agentId']}")
    assert (await owner.get("/v0/agents/memory")).json() == {"agents": []}


async def test_last_use_of_agents(server: RunningServer, tenant: str) -> None:
    """Requests without a valid token, and readers of the API, use no agent."""
    owner = server.client(server.key(tenant))
    agent = (await owner.post("/v0/agents", json={"name": "ada"})).json()["agent"]
    path, own = f"/v0/agents/{agent['agentId']}", server.agent_client(agent)
    host = f"{agent['agentId']}.agents.localhost"

    async def read_use() -> str | None:
        (listed,) = (await owner.get("/v0/agents")).json()["agents"]
        detail = (await owner.get(path)).json()["agent"]
        assert (listed["lastUsedAt"] is None) == (detail["lastUsedAt"] is None)
        assert (listed["lastUsedAt"] or "") <= (detail["lastUsedAt"] or "")  # a task that runs uses the agent meanwhile
        return detail["lastUsedAt"]

    assert (await server.client("rst_gw_wrong", host).get("/")).status_code == 401
    assert (await own.get("/v0/logs")).status_code == 200
    assert await read_use() is None
    last = ""
    task = {"name": "greet", "schedule": "0 9 * * *", "payload": "Go."}
    task_id = (await own.post("/v0/tasks", json=task)).json()["task"]["id"]
    assert await read_use() is None
    await owner.post(f"{path}/domains", json={"subdomain": "last-use"})
    assert await read_use() is None
    domain = server.client(agent["gatewayToken"], "last-use.agents.localhost")
    for use in (
        domain.post("/v1/chat/completions", json={"messages": BODY["messages"]}),
        own.post("/v1/chat/completions", json={"messages": BODY["messages"]}),
        owner.post(f"{path}/console/exec", json={"command": "true"}),
        owner.post(f"{path}/chat", json={"messages": [{"role": "user", "content": "hello"}]}),
        own.post("/v0/llm/v1/chat/completions", json=BODY),
        own.post(f"/v0/tasks/{task_id}/run"),
    ):
        answer = await use
        assert answer.status_code < 300, answer.text
        used = await read_use()
        assert used is not None
        assert used > last
        last = used
