"""Vectors over HTTP (contract, Storage API 5): shapes, scopes, hostile input (I10, I11), and the groups of agents."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx2 as httpx
import pytest

from roost.identity.caller import Plan
from tests.architecture.code import CATALOGUE
from tests.contract.endpoints import routes
from tests.contract.test_storage_groups import create
from tests.support.server import RunningServer, running

UNKNOWN = "00000000-0000-4000-8000-000000000000"
ON_SERVICES = {"test_upload_vectorize_query_delete_on_both_hosts"}
TEA, BOILER = "Tea is made with hot water.", "The boiler is serviced in May."


async def upload(api: httpx.AsyncClient, text: str | bytes, group: str | None = None, network: str = "private") -> str:
    fields = {"network": network} | ({"group_id": group} if group else {})
    answer = await api.post("/v3/files", data=fields, files={"file": ("n.txt", text)})
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]["id"]


async def query(api: httpx.AsyncClient, group: str, **body: Any) -> httpx.Response:
    return await api.post(f"/v3/vectorize/groups/{group}/query", json=body)


def test_vectors_need_their_scopes() -> None:
    served = {key: row["credentials"] for key, row in routes().items() if key[1].startswith("/v3/vectorize")}
    agents = {key for key, kinds in served.items() if kinds[1:] == ["platform", "relay"]}
    assert agents == {
        ("POST", "/v3/vectorize/files/{file_id}"),
        ("GET", "/v3/vectorize/files/{file_id}"),
        ("GET", "/v3/vectorize/groups"),
        ("GET", "/v3/vectorize/groups/{id}/files"),
        ("POST", "/v3/vectorize/groups/{id}/query"),
    }
    assert served["DELETE", "/v3/vectorize/files/{file_id}"] == ["org:write"]


async def test_upload_vectorize_query_delete_on_both_hosts(server: RunningServer, api: httpx.AsyncClient) -> None:
    group = (await create(api))["id"]
    file = await upload(api, TEA, group)
    path = f"/v3/vectorize/files/{file}"
    before = (await api.get(path)).json()["data"]
    assert (before["state"], before["chunks"], before["model"], before["updated_at"]) == ("none", 0, None, None)
    for host in ("api.localhost", "uploads.localhost", "localhost"):
        there = server.client(api.headers["Authorization"].removeprefix("Bearer "), host)
        made = (await there.post(path)).json()
        assert (made["success"], made["status"], made["data"]["file_id"]) == (True, "indexed", file)
        assert {key: made["data"][key] for key in ("chunks", "chunks_done", "reason")} == {
            "chunks": 1,
            "chunks_done": 1,
            "reason": None,
        }
        found = (await query(there, group, text="hot tea")).json()["data"]
        assert (found["count"], found["outdated_files"]) == (1, 0)
        (match,) = found["matches"]
        assert 0 < match.pop("score") <= 1
        assert match == {
            **{key: made["data"][key] for key in ("file_id", "cid", "name", "network")},
            "text": TEA,
            "begin": 0,
            "end": len(TEA),
        }
        for _ in range(2):
            answer = await there.delete(path)
            assert (answer.status_code, answer.json()) == (200, {"success": True})
        assert (await query(there, group, text="hot tea")).json()["data"]["matches"] == []


async def test_a_body_is_json_whatever_its_type(api: httpx.AsyncClient) -> None:
    group, body = (await create(api))["id"], json.dumps({"text": "tea"})
    for content_type in ("text/plain;charset=UTF-8", "application/json", "application/octet-stream", ""):
        answer = await api.post(
            f"/v3/vectorize/groups/{group}/query", content=body, headers={"Content-Type": content_type}
        )
        assert (answer.status_code, answer.json()["data"]["count"]) == (200, 0)


@pytest.mark.parametrize(
    "body",
    [
        *("", "{", "[]", "null", '"tea"', "{}", '{"text": null}', '{"text": 7}', '{"text": ["tea"]}', '{"text": ""}'),
        *('{"text": " \\n"}', '{"text": NaN}', '{"text": "tea", "limit": NaN}', '{"text": "tea", "limit": Infinity}'),
        *('{"text": "tea", "limit": 0}', '{"text": "tea", "limit": -1}', '{"text": "tea", "limit": 21}'),
        *('{"text": "tea", "limit": 1e99}', '{"text": "tea", "limit": "5"}', '{"text": "tea", "limit": 2.5}'),
        *('{"text": "tea", "limit": true}', '{"text": "a\\u0000b"}', '{"text": "\\ud800"}'),
        json.dumps({"text": "tea", "limit": 10**400}),
        json.dumps({"text": "x" * 100_000}),
        json.dumps({"vector": [0.5] * 384}),
    ],
    ids=lambda body: body[:40],
)
async def test_hostile_queries_are_refused(api: httpx.AsyncClient, body: str) -> None:
    """Case I11."""
    group = (await create(api))["id"]
    answer = await api.post(f"/v3/vectorize/groups/{group}/query", content=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, 400), answer.text


async def test_a_query_cannot_name_another_tenant(server: RunningServer, api: httpx.AsyncClient, tenant: str) -> None:
    """Case I11: the filter of the tenant is not part of a request."""
    group = (await create(api))["id"]
    file = await upload(api, TEA, group)
    assert (await api.post(f"/v3/vectorize/files/{file}")).status_code == 200
    stranger = server.client(server.key(f"{tenant} 2"), "api.localhost")
    own = (await create(stranger))["id"]
    more = {"tenant_id": tenant, "group_id": group, "filter": {"tenant_id": {"$ne": ""}}, "file_id": file}
    assert (await query(stranger, own, text="tea", **more)).json()["data"]["matches"] == []
    for answer in (
        await query(stranger, group, text="tea"),
        await stranger.get(f"/v3/vectorize/groups/{group}/files"),
        await stranger.get(f"/v3/vectorize/groups/{group}/agents"),
        await stranger.post(f"/v3/vectorize/files/{file}"),
        await stranger.get(f"/v3/vectorize/files/{file}"),
        await stranger.delete(f"/v3/vectorize/files/{file}"),
    ):
        assert answer.status_code == 404, answer.text
    assert (await query(api, group, text="tea")).json()["data"]["count"] == 1


@pytest.mark.parametrize("file", [UNKNOWN, "x", "'%20OR%201=1", "%E2%82%AC"])
async def test_unknown_files_are_not_found(api: httpx.AsyncClient, file: str) -> None:
    """Case I10."""
    for method in ("GET", "POST", "DELETE"):
        answer = await api.request(method, f"/v3/vectorize/files/{file}")
        assert (answer.status_code, answer.json()["error"]["message"]) == (404, "File not found")


async def test_vectors_of_a_deleted_file(api: httpx.AsyncClient) -> None:
    """Case I10."""
    file = await upload(api, TEA)
    assert (await api.post(f"/v3/vectorize/files/{file}")).status_code == 200
    assert (await api.delete(f"/v3/files/private/{file}")).status_code == 200
    assert (await api.delete(f"/v3/vectorize/files/{file}")).status_code == 404


async def test_a_file_without_text_is_an_error_with_the_reason(api: httpx.AsyncClient) -> None:
    file = await upload(api, b"\0\1\2")
    answer = await api.post(f"/v3/vectorize/files/{file}")
    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith("Only text, HTML, PDF")
    shown = (await api.get(f"/v3/vectorize/files/{file}")).json()["data"]
    assert (shown["state"], shown["reason"]) == ("failed", answer.json()["error"]["message"])
    folder = await api.post(
        "/v3/files", data={"network": "private"}, files=[("file", (f"d/{name}", b"x")) for name in "ab"]
    )
    answer = await api.post(f"/v3/vectorize/files/{folder.json()['data']['id']}")
    assert (answer.status_code, "A folder has no text" in answer.json()["error"]["message"]) == (400, True)


async def test_keys_need_the_scopes(server: RunningServer, api: httpx.AsyncClient, tenant: str) -> None:
    group = (await create(api))["id"]
    file = await upload(api, TEA, group)
    reader, narrow = (
        server.client(server.key(tenant, scopes=frozenset({scope})), "api.localhost")
        for scope in ("org:read", "org:files:write")
    )
    assert (await reader.get(f"/v3/vectorize/files/{file}")).status_code == 200
    assert (await query(reader, group, text="tea")).status_code == 200
    for client, method in ((reader, "POST"), (reader, "DELETE"), (narrow, "POST"), (narrow, "GET"), (narrow, "DELETE")):
        answer = await client.request(method, f"/v3/vectorize/files/{file}")
        assert answer.status_code == 403, (method, answer.text)
    assert (await reader.put(f"/v3/vectorize/groups/{group}/agents/x")).status_code == 403


@dataclass
class AgentsEnv:
    """A server with agents that request from their containers, and a tenant with a group of one vectorized file."""

    server: RunningServer
    api: httpx.AsyncClient
    ada: str
    bob: str
    group: str
    file: str

    async def request(self, agent: str, method: str, path: str, body: Any = None, token: str | None = None) -> Any:
        """Request a path from an agent's container; return status and body."""
        code = (
            "import json,sys,urllib.request as u,urllib.error as e\n"
            "m,p,t,b=json.loads(sys.argv[1])\n"
            "h={'Authorization':'Bearer '+t} if t else {}\n"
            "r=u.Request('http://127.0.0.1:8799'+p,None if b is None else json.dumps(b).encode(),h,method=m)\n"
            "try: a=u.build_opener(u.ProxyHandler({})).open(r,timeout=30)\n"
            "except e.HTTPError as x: a=x\n"
            "print(json.dumps([a.status,a.read().decode()]))"
        )
        warden = self.server.roost.agents.registry.runtimes.get_warden(agent)
        ran = await warden.exec(["python3", "-c", code, json.dumps([method, path, token, body])])
        assert ran.exit_code == 0, ran.stderr
        status, text = json.loads(ran.stdout)
        return status, json.loads(text)

    async def grant(self, agent: str, method: str = "PUT") -> httpx.Response:
        return await self.api.request(method, f"/v3/vectorize/groups/{self.group}/agents/{agent}")

    async def platform_token(self, agent: str) -> str:
        """Exchange the agent's gateway token."""
        path = f"/v0/agents/{agent}"
        gateway = (await self.server.client(self.server.key("agents")).get(f"{path}/gateway-token")).json()["token"]
        return (await self.server.client(gateway, "localhost").post(f"{path}/platform/token")).json()["token"]

    async def create_agent(self, name: str, tenant: str = "agents") -> str:
        made = await self.server.client(self.server.key(tenant)).post("/v0/agents", json={"name": name})
        return made.json()["agent"]["agentId"]


@pytest.fixture(scope="module")
async def env(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[AgentsEnv]:
    async with running(tmp_path_factory.mktemp("d") / "data") as server:
        api = server.client(server.key("agents", Plan.PAID), "api.localhost")
        group = (await create(api))["id"]
        opened = AgentsEnv(server, api, "", "", group, await upload(api, TEA, group))
        opened.ada, opened.bob = await opened.create_agent("Ada"), await opened.create_agent("Bob", "others")
        assert (await api.post(f"/v3/vectorize/files/{opened.file}")).status_code == 200
        yield opened


async def test_an_agent_searches_a_granted_group_and_no_other(env: AgentsEnv) -> None:
    search, listing = f"/v3/vectorize/groups/{env.group}/query", f"/v3/vectorize/groups/{env.group}/files"
    assert (await env.request(env.ada, "POST", search, {"text": "tea"}))[0] == 404
    assert (await env.request(env.ada, "GET", f"/v3/vectorize/files/{env.file}"))[0] == 404
    assert (await env.request(env.ada, "GET", "/v3/vectorize/groups"))[1] == {"data": {"groups": []}}
    assert (await env.grant(env.ada)).json() == {"data": None}
    assert (await env.grant(env.ada)).status_code == 200
    status, found = await env.request(env.ada, "POST", search, {"text": "tea"})
    assert (status, [match["text"] for match in found["data"]["matches"]]) == (200, [TEA])
    groups = (await env.request(env.ada, "GET", "/v3/vectorize/groups"))[1]["data"]["groups"]
    assert groups == [{"id": env.group, "name": "photos", "network": "private"}]
    files = (await env.request(env.ada, "GET", listing))[1]["data"]["files"]
    assert [(file["file_id"], file["state"]) for file in files] == [(env.file, "indexed")]
    new = await upload(env.api, BOILER, env.group)
    assert (await env.request(env.ada, "POST", f"/v3/vectorize/files/{new}"))[1]["status"] == "indexed"
    elsewhere = await upload(env.api, "secret plans", (await create(env.api))["id"])
    for method in ("GET", "POST"):
        assert (await env.request(env.ada, method, f"/v3/vectorize/files/{elsewhere}"))[0] == 404
    shown = (await env.api.get(f"/v3/vectorize/groups/{env.group}/agents")).json()["data"]["agents"]
    assert [one["agent_id"] for one in shown] == [env.ada]
    assert (await env.grant(env.ada, "DELETE")).json() == {"data": None}
    assert (await env.request(env.ada, "POST", search, {"text": "tea"}))[0] == 404
    assert (await env.api.delete(f"/v3/files/private/{new}")).status_code == 200


async def test_an_agent_reaches_nothing_else_of_the_storage_api(env: AgentsEnv) -> None:
    await env.grant(env.ada)
    for method, path in (
        ("DELETE", f"/v3/vectorize/files/{env.file}"),
        ("GET", f"/v3/vectorize/groups/{env.group}/agents"),
        ("PUT", f"/v3/vectorize/groups/{env.group}/agents/{env.ada}"),
        ("DELETE", f"/v3/vectorize/groups/{env.group}/agents/{env.ada}"),
        ("GET", f"/v3/files/private/{env.file}"),
        ("GET", "/v3/files/private"),
        ("GET", "/v3/groups/private"),
        ("GET", f"/v3/vectorize/files/{env.file}/../../../files/private"),
        ("GET", f"/v3/vectorize/files/{env.file}%2f..%2fx"),
    ):
        assert (await env.request(env.ada, method, path, {} if method != "GET" else None))[0] == 404, path
    await env.grant(env.ada, "DELETE")


async def test_a_platform_token_searches_for_its_agent(env: AgentsEnv) -> None:
    path = f"/v3/vectorize/groups/{env.group}/query"
    inside = (await env.request(env.ada, "POST", f"/v0/agents/{env.ada}/platform/token"))[1]["token"]
    token = await env.platform_token(env.ada)
    for host in ("api.localhost", "uploads.localhost", "agents.localhost", "localhost"):
        client = env.server.client(token, host)
        assert (await client.post(path, json={"text": "tea"})).status_code == 404
        await env.grant(env.ada)
        assert (await client.post(path, json={"text": "tea"})).json()["data"]["count"] == 1
        assert (await env.server.client(inside, host).post(path, json={"text": "tea"})).status_code == 401
        assert (await env.request(env.ada, "POST", path, {"text": "tea"}, inside))[0] == 200
        assert (await client.delete(f"/v3/vectorize/files/{env.file}")).status_code == 401
        assert (await client.get("/v3/files/private")).status_code == 401
        await env.grant(env.ada, "DELETE")
    assert (await env.request(env.bob, "POST", path, {"text": "tea"}, token))[0] == 401


async def test_the_skill_searches(env: AgentsEnv) -> None:
    """The skill of the catalogue, against the server."""
    warden = env.server.roost.agents.registry.runtimes.get_warden(env.ada)
    script = (CATALOGUE / "search-files/scripts/search_files.py").read_text()

    async def run(*arguments: str) -> str:
        ran = await warden.exec(["python3", "-c", script, *arguments])
        return (ran.stdout + ran.stderr).decode()

    assert await run("groups") == "no groups: the owner grants one with `roost vectors grant`\n"
    assert await run("query", "photos", "tea") == "error: 0 groups are 'photos'; use the id of one\n"
    await env.grant(env.ada)
    new = await upload(env.api, b"\0", env.group)
    assert await run("groups") == f"{env.group}  photos\n"
    assert await run("files", "photos") == "none      n.txt\nindexed   n.txt\n"
    assert (await run("index", env.group)).startswith("failed    n.txt  Only text, HTML")
    assert f"\n    {TEA}\n" in await run("query", "photos", "tea", "--limit", "1")
    assert await run("query", "photos", "tea", "--limit", "99") == (
        "error: limit: Input should be less than or equal to 20\n"
    )
    assert (await env.api.delete(f"/v3/files/private/{new}")).status_code == 200
    await env.grant(env.ada, "DELETE")


async def test_agents_of_others_get_nothing(env: AgentsEnv) -> None:
    assert (await env.grant(env.bob)).json()["error"]["message"] == "Agent not found"
    assert (await env.grant("nowhere")).status_code == 404
    answer = await env.api.put(f"/v3/vectorize/groups/{UNKNOWN}/agents/{env.ada}")
    assert answer.json()["error"]["message"] == "Group not found"
    await env.grant(env.ada)
    assert (await env.request(env.bob, "POST", f"/v3/vectorize/groups/{env.group}/query", {"text": "tea"}))[0] == 404
    assert (await env.request(env.bob, "GET", "/v3/vectorize/groups"))[1]["data"]["groups"] == []
    await env.grant(env.ada, "DELETE")


async def test_grants_end_with_the_agent_and_with_the_group(env: AgentsEnv) -> None:
    eve, other = await env.create_agent("Eve"), (await create(env.api))["id"]
    assert (await env.grant(eve)).status_code == 200
    assert (await env.api.put(f"/v3/vectorize/groups/{other}/agents/{eve}")).status_code == 200
    assert len((await env.request(eve, "GET", "/v3/vectorize/groups"))[1]["data"]["groups"]) == 2
    assert (await env.api.delete(f"/v3/groups/private/{other}")).status_code == 200
    assert len((await env.request(eve, "GET", "/v3/vectorize/groups"))[1]["data"]["groups"]) == 1
    token = await env.platform_token(eve)
    deleted = await env.server.client(env.server.key("agents")).delete(f"/v0/agents/{eve}")
    assert deleted.status_code in {200, 204}
    assert (await env.api.get(f"/v3/vectorize/groups/{env.group}/agents")).json()["data"]["agents"] == []
    assert (await env.server.client(token, "api.localhost").get("/v3/vectorize/groups")).status_code == 401
