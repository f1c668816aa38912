"""The same server with other drivers: PostgreSQL, and a real model provider's API."""

from pathlib import Path
from typing import Any

import httpx2 as httpx

from tests.drivers.model import local
from tests.support.server import RunningServer, running


async def chat(server: RunningServer, agent: dict, text: str) -> httpx.Response:
    own = server.agent_client(agent)
    body = {"model": "any", "messages": [{"role": "user", "content": text}]}
    return await own.post("/v1/chat/completions", json=body)


async def test_an_agents_life_on_both_databases(tmp_path: Path, database_url: str) -> None:
    async with running(tmp_path / "data", ROOST_DATABASE_URL=database_url) as server:
        api = server.client(server.key())
        agent = (await api.post("/v0/agents", json={"name": "a"})).json()["agent"]
        assert "hello" in (await chat(server, agent, "hello")).text
        assert (await api.post(f"/v0/agents/{agent['agentId']}/restart")).status_code == 200
        rotated = (await api.post(f"/v0/agents/{agent['agentId']}/gateway-token/rotate")).json()["token"]
        assert (await chat(server, agent, "old token")).status_code == 401
        assert (await chat(server, agent | {"gatewayToken": rotated}, "new token")).status_code == 200
    async with running(tmp_path / "data", ROOST_DATABASE_URL=database_url) as server:  # the same one after a restart
        api = server.client(server.key())
        assert [one["agentId"] for one in (await api.get("/v0/agents")).json()["agents"]] == [agent["agentId"]]
        assert (await api.delete(f"/v0/agents/{agent['agentId']}")).status_code == 200
        assert (await api.get("/v0/agents")).json()["agents"] == []


async def test_a_providers_key_serves_agents_and_stays_on_the_host(tmp_path: Path) -> None:
    secret = local.KEY.reveal()
    provider = local.OpenAIProvider()
    async with local.serving(provider) as address:
        environment: dict[str, Any] = {
            "ROOST_MODEL_URL": f"{address}/v1",
            "ROOST_MODEL_KEY": secret,
            "ROOST_MODELS": local.MODEL,
        }
        async with running(tmp_path / "data", **environment) as server:
            api = server.client(server.key())
            agent = (await api.post("/v0/agents", json={"name": "a"})).json()["agent"]
            said = await chat(server, agent, "through the provider")
            assert said.status_code == 200, said.text
            assert "through the provider" in said.text
            assert provider.headers["authorization"] == f"Bearer {secret}"
            own = server.agent_client(agent)
            everywhere = "/home /workspace /tmp /run /etc"
            grep = f"env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null; grep -rs secret-01 {everywhere}"
            seen = (await own.post("/v0/console/exec", json={"command": grep})).json()
            assert "PATH" in seen["stdout"]
            assert secret not in seen["stdout"] + seen["stderr"]
            for path in ("/v0/logs", f"/v0/agents/{agent['agentId']}"):
                assert secret not in (await own.get(path)).text
