"""The agent's own view: credentials, addresses, and scopes of platform tokens (A7, A10, A11)."""

import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx2 as httpx
import pytest

from roost.core import clock, ids
from roost.core.seal import Sealer
from roost.core.sensitive import Sensitive
from roost.http.stack.routes import PLATFORM
from roost.identity import store
from tests.contract.endpoints import routes
from tests.support.server import RunningServer, running


@dataclass
class AgentEnv:
    server: RunningServer
    agent: dict[str, Any]
    other: dict[str, Any]

    @property
    def agent_client(self) -> httpx.AsyncClient:
        """Return a client of the agent's own address, with its gateway token."""
        return self.server.agent_client(self.agent)

    async def token(self) -> str:
        answer = await self.agent_client.post("/v0/platform/token")
        assert answer.status_code == 200, answer.text
        return answer.json()["token"]

    async def request_from_container(
        self, method: str, path: str, token: str | None = None, body: Any = None
    ) -> tuple[int, Any]:
        """Request the platform API from a program in the container."""
        code = (
            "import json,sys,urllib.request as u,urllib.error as e\n"
            "m,p,t,b=json.loads(sys.argv[1])\n"
            "h={'Content-Type':'application/json'}\n"
            "if t: h['Authorization']='Bearer '+t\n"
            "r=u.Request('http://127.0.0.1:8799'+p,None if b is None else json.dumps(b).encode(),h,method=m)\n"
            "try: a=u.build_opener(u.ProxyHandler({})).open(r,timeout=20)\n"
            "except e.HTTPError as x: a=x\n"
            "print(json.dumps([a.status,a.read().decode()]))"
        )
        warden = self.server.roost.agents.registry.runtimes.get_warden(self.agent["agentId"])
        ran = await warden.exec(["python3", "-c", code, json.dumps([method, path, token, body])])
        assert ran.exit_code == 0, ran.stderr
        status, text = json.loads(ran.stdout)
        return status, json.loads(text) if text else None


@pytest.fixture(scope="module")
async def env(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[AgentEnv]:
    async with running(tmp_path_factory.mktemp("d") / "data") as server:
        api = server.client(server.key())
        made = [(await api.post("/v0/agents", json={"name": name})).json()["agent"] for name in ("Ada", "Bob")]
        yield AgentEnv(server, *made)


async def test_exchange_gives_a_token_for_an_hour(env: AgentEnv) -> None:
    answer = (await env.agent_client.post("/v0/platform/token")).json()
    assert list(answer) == ["token", "expiresAt", "expiresIn"]
    assert 3500 < answer["expiresIn"] <= 3600
    assert answer["expiresAt"].endswith("Z")
    path = f"/v0/agents/{env.agent['agentId']}/platform/token"
    assert (await env.agent_client.post(path)).status_code == 200
    assert (await env.server.client(env.agent["gatewayToken"], "localhost").post(path)).status_code == 200


async def test_only_the_header_counts_in_an_exchange(env: AgentEnv) -> None:
    token, host = env.agent["gatewayToken"], f"{env.agent['agentId']}.agents.localhost"
    origin = f"http://{host}:{env.server.port}"
    bare = env.server.client(host=host)
    for headers, query in (
        ({"Cookie": f"gw_token={token}", "Origin": origin}, ""),
        ({}, f"?token={token}"),
        ({}, ""),
        ({"Authorization": "Bearer x"}, f"?token={token}"),
    ):
        answer = await bare.post(f"/v0/platform/token{query}", headers=headers)
        assert answer.status_code == 401, answer.text
    for other in (env.server.key(), env.other["gatewayToken"], await env.token()):
        assert (await env.server.client(other, host).post("/v0/platform/token")).status_code == 401


async def test_an_agent_makes_no_sign_in_link(env: AgentEnv) -> None:
    path = f"/v0/agents/{env.agent['agentId']}/sign-in-link"
    assert (await env.request_from_container("POST", path))[0] == 404
    assert (await env.request_from_container("POST", path, await env.token()))[0] == 403


async def test_who_an_agent_is(env: AgentEnv) -> None:
    shown = (await env.agent_client.get("/v0/platform/whoami")).json()
    assert (shown["agentId"], shown["name"], shown["userId"]) == (
        env.agent["agentId"],
        "Ada",
        env.agent["userId"],
    )
    assert {"description", "vibe", "emoji", "engine", "agentVersion", "url", "status"} <= shown.keys()
    assert "gatewayToken" not in shown
    assert await env.request_from_container("GET", "/v0/platform/whoami") == (200, shown)
    path = f"/v0/agents/{env.agent['agentId']}/platform/whoami"
    assert (await env.server.client(await env.token()).get(path)).json() == shown
    assert (await env.server.client(env.server.key()).get(path)).status_code == 401


async def test_metadata_can_be_changed_by_the_agent(env: AgentEnv) -> None:
    changed = await env.agent_client.patch("/v0/platform/metadata", json={"description": "helps", "emoji": "🦉"})
    assert changed.json()["agent"]["description"] == "helps"
    _, answer = await env.request_from_container("PATCH", "/v0/platform/metadata", body={"vibe": "calm", "emoji": None})
    agent = answer["agent"]
    assert (agent["name"], agent["description"], agent["vibe"], agent["emoji"]) == ("Ada", "helps", "calm", None)
    for bad in ({"name": ""}, {"name": None}, {"name": "x" * 101}, {"vibe": "x" * 201}, {"emoji": 3}, {"name": "<b>"}):
        assert (await env.agent_client.patch("/v0/platform/metadata", json=bad)).status_code == 400, bad
    assert (await env.agent_client.get("/v0/platform/whoami")).json()["name"] == "Ada"


async def test_another_model_restarts_the_gateway(env: AgentEnv) -> None:
    async def engine_model() -> str:
        body = {"command": "cat ~/.roost/fake/settings.json"}
        return json.loads((await env.agent_client.post("/v0/console/exec", json=body)).json()["stdout"])["model"]

    default = await engine_model()
    for model, chosen in (("scripted/scripted", "scripted/scripted"), ("gone/model", default), (None, default)):
        changed = (await env.agent_client.patch("/v0/platform/metadata", json={"model": model})).json()["agent"]
        assert (changed["model"], changed["status"]) == (model, "running")
        assert await engine_model() == chosen


async def test_status_is_shown_inside_and_outside(env: AgentEnv) -> None:
    shown = (await env.agent_client.get("/v0/status")).json()
    assert (shown["status"], shown["processStatus"], shown["engine"]) == ("running", "running", "fake")
    assert (await env.request_from_container("GET", "/v0/status"))[0] == 200


PUBLIC_POSTS = ("/api/v1/skills/-/security-verdicts",)
"""What everyone may read by POST, because a client of ClawHub sends a list."""


async def test_a_container_finds_nothing_else_but_what_everyone_may_read(env: AgentEnv) -> None:
    agent_id, other = env.agent["agentId"], env.other["agentId"]
    for row in routes().values():
        path = row["path"].replace("{agentId}", agent_id)
        is_public = not row["credentials"] and (row["method"] == "GET" or path in PUBLIC_POSTS)
        if is_public or "relay" in row["credentials"] or row["method"] == "WEBSOCKET":
            continue
        status, _ = await env.request_from_container(row["method"], re.sub(r"\{[^}]*\}", "x", path), body={})
        assert status == 404, row
    assert (await env.request_from_container("GET", f"/v0/agents/{other}/platform/whoami"))[0] == 404
    assert (await env.request_from_container("POST", f"/v0/agents/{other}/platform/token"))[0] == 404


async def test_a_platform_token_opens_what_names_it_and_nothing_else(env: AgentEnv) -> None:
    token, agent_id = await env.token(), env.agent["agentId"]
    client, dashboard = env.server.client(token), env.server.client(token, "localhost")
    for row in routes().values():
        path = row["path"].replace("{agentId}", agent_id).replace("{network}", "private")
        path = re.sub(r"\{[^}]*\}", "00000000-0000-4000-8000-000000000000", path)
        if row["method"] == "WEBSOCKET" or not row["credentials"]:
            continue
        is_dashboard = row["addresses"] == ["dashboard"]
        answer = await (dashboard if is_dashboard else client).request(row["method"], path, json={})
        if PLATFORM in row["credentials"]:
            assert answer.status_code not in {401, 403}, (row, answer.text)
        elif is_dashboard or "storage" in row["addresses"] or row["credentials"] == ["basic"]:  # not accepted at all
            assert answer.status_code == 401, row
        else:
            assert (answer.status_code, _error_of(answer)) == (403, "Permission denied"), row
    assert (await client.get(f"/v0/agents/{agent_id}")).status_code == 200


def _error_of(answer: httpx.Response) -> str:
    error = answer.json()["error"]
    return error["message"] if isinstance(error, dict) else error


async def test_own_record_shows_no_gateway_token(env: AgentEnv) -> None:
    client = env.server.client(await env.token())
    shown = await client.get(f"/v0/agents/{env.agent['agentId']}")
    assert env.agent["gatewayToken"] not in shown.text


async def test_it_opens_no_other_agent_and_no_other_address(env: AgentEnv) -> None:
    token, agent_id, other = await env.token(), env.agent["agentId"], env.other["agentId"]
    assert (await env.server.client(token).get(f"/v0/agents/{other}")).status_code == 403
    assert (await env.server.client(token).get("/v0/agents/nobody")).status_code == 403
    assert (await env.server.client(token, "localhost").get(f"/v0/agents/{agent_id}")).status_code == 200
    own = env.server.client(token, f"{agent_id}.agents.localhost")
    for path in ("/v0/logs", "/v0/platform/whoami", "/v1/models"):
        assert (await own.get(path)).status_code == 401


async def test_it_works_from_its_own_container_only(env: AgentEnv) -> None:
    mine, path = await env.token(), f"/v0/agents/{env.agent['agentId']}"
    assert (await env.request_from_container("GET", path, mine))[0] == 200
    assert (await env.request_from_container("DELETE", path, mine))[0] == 403
    theirs = (await env.server.agent_client(env.other).post("/v0/platform/token")).json()["token"]
    assert (await env.request_from_container("GET", f"/v0/agents/{env.other['agentId']}", theirs))[0] == 401
    assert (await env.request_from_container("GET", path, mine[:-3]))[0] == 401
    assert (await env.request_from_container("GET", "/v1/models", "whatever an engine shows"))[0] == 200


async def test_a_rotation_ends_it(env: AgentEnv) -> None:
    token, path = await env.token(), f"/v0/agents/{env.agent['agentId']}"
    client, api = env.server.client(token), env.server.client(env.server.key())
    assert (await client.get(path)).status_code == 200
    env.agent["gatewayToken"] = (await api.post(f"{path}/gateway-token/rotate")).json()["token"]
    assert (await client.get(path)).status_code == 401


async def test_when_the_signing_key_cannot_be_opened(env: AgentEnv) -> None:
    strange = Sealer(Sensitive(ids.random_bytes(32))).seal(bytes(32), "signing_keys/strange")
    db = env.server.roost.core.db
    db.run(lambda c: store.add_signing_key(c, "strange", strange, clock.utc_now()))
    try:
        answer = await env.agent_client.post("/v0/platform/token")
        assert (answer.status_code, answer.json()) == (500, {"error": "Token generation failed"})
    finally:
        db.run(lambda c: c.execute(store.signing_keys.delete().where(store.signing_keys.c.id == "strange")))
    assert (await env.agent_client.post("/v0/platform/token")).status_code == 200
