"""Event streams over HTTP and WebSockets: who sees what, cursors, and their end."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2 as httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.contract.test_sessions import signed_in
from tests.support.server import RunningServer

DEADLINE = 20.0
PATH = "/v0/events"
KEY = {"keyName": "k", "permissions": {"admin": True}}


@pytest.fixture
async def agent(server: RunningServer, tenant: str) -> AsyncIterator[dict[str, Any]]:
    api = server.client(server.key(tenant))
    made = (await api.post("/v0/agents", json={"name": "ada"})).json()["agent"]
    yield made
    await api.delete(f"/v0/agents/{made['agentId']}")


async def upload(api: httpx.AsyncClient, name: str) -> str:
    form = {"file": (name, name.encode()), "network": (None, "public")}
    return (await api.post("/v3/files", files=form)).json()["data"]["id"]


@asynccontextmanager
async def stream(client: httpx.AsyncClient, path: str = PATH, **options: Any) -> AsyncIterator[AsyncIterator[str]]:
    async with asyncio.timeout(DEADLINE), client.stream("GET", path, **options) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield answer.aiter_lines()


async def receive(lines: AsyncIterator[str], count: int) -> list[dict[str, Any]]:
    """Return the data of the next events."""
    found = list[dict[str, Any]]()
    while len(found) < count:
        if (line := await anext(lines)).startswith("data: "):
            found.append(json.loads(line.removeprefix("data: ")))
    return found


def socket(server: RunningServer, token: str, path: str = PATH, host: str = "agents.localhost") -> connect:
    headers = {"Authorization": f"Bearer {token}"}
    url = f"ws://{host}:{server.port}{path}"
    return connect(url, proxy=None, host="127.0.0.1", port=server.port, additional_headers=headers)


async def receive_all(opened: ClientConnection) -> None:
    while True:
        await opened.recv()


async def test_a_stream_resumes_after_its_cursor(server: RunningServer, tenant: str, api: httpx.AsyncClient) -> None:
    client = server.client(server.key(tenant))
    async with stream(client) as lines:
        assert [await anext(lines), await anext(lines)] == ["id: 0", ": heartbeat"]
        file_id = await upload(api, "a.txt")
        event = (await receive(lines, 1))[0]
    assert event.pop("at").endswith("Z")
    cid = event["data"].pop("cid")
    assert event["actor"].pop("id")
    assert event == {
        "id": "1",
        "type": "file.added",
        "subject": {"kind": "file", "id": file_id},
        "agentId": None,
        "actor": {"kind": "key", "name": "test"},
        "data": {"name": "a.txt", "size": 5, "network": "public"},
    }
    assert cid.startswith("baf")
    await api.delete(f"/v3/files/public/{file_id}")
    resumed: list[dict[str, Any]] = [
        {"headers": {"Last-Event-ID": "1"}},
        {"params": {"after": "1", "types": "file"}},
    ]
    for options in resumed:
        async with stream(client, **options) as lines:
            assert [(one["id"], one["type"]) for one in await receive(lines, 1)] == [("2", "file.deleted")]
    async with stream(client, params={"after": "77"}) as lines:
        assert (await receive(lines, 1))[0] | {"at": ""} == {
            "id": "2",
            "type": "reset",
            "at": "",
            "subject": None,
            "agentId": None,
            "actor": None,
            "data": {},
        }


async def test_a_websocket_has_the_same_objects(server: RunningServer, tenant: str, api: httpx.AsyncClient) -> None:
    async with asyncio.timeout(DEADLINE), socket(server, server.key(tenant)) as opened:
        assert json.loads(await opened.recv())["type"] == "heartbeat"
        await upload(api, "b.txt")
        message = json.loads(await opened.recv())
        assert list(message) == ["id", "type", "at", "subject", "agentId", "actor", "data"]
        assert (message["type"], message["data"]["name"]) == ("file.added", "b.txt")


async def test_an_agent_is_followed_from_its_start_to_its_end(server: RunningServer, tenant: str) -> None:
    client = server.client(server.key(tenant))
    made = (await client.post("/v0/agents", json={"name": "eve"})).json()["agent"]
    name = {"name": "FOO_KEY", "value": "very secret", "type": "secret"}
    secret = (await client.post("/v0/secrets", json=name)).json()["secret"]
    path = f"/v0/agents/{made['agentId']}"
    await client.post(f"{path}/secrets", json={"secretIds": [secret["id"]]})
    await client.delete(path)
    async with stream(client, params={"after": "0"}) as lines:
        seen = list[dict[str, Any]]()
        while not seen or (seen[-1]["data"].get("kind"), seen[-1]["data"].get("state")) != ("agent.delete", "done"):
            seen += await receive(lines, 1)
    assert [one["type"] for one in seen].count("agent.deleted") == 1
    assert [one["id"] for one in seen] == [str(number) for number in range(1, len(seen) + 1)]
    assert "very secret" not in json.dumps(seen)
    assert made["gatewayToken"] not in json.dumps(seen)
    states = [one["data"]["state"] for one in seen if one["type"] in {"agent.created", "agent.changed"}]
    assert (states[0], states[-1]) == ("starting", "running")
    starts = [one["data"]["state"] for one in seen if one["data"].get("kind") == "agent.start"]
    assert starts[:3] == ["pending", "running", "done"]
    assert set(starts[3:]) <= {"pending"}  # with the new secret, which the deletion overtakes
    attached = [one for one in seen if one["type"] == "secret.changed" and one["agentId"]]
    assert [one["data"] for one in attached] == [{"name": "FOO_KEY", "action": "attached"}]


async def test_each_resource_of_an_agent_has_events(server: RunningServer, tenant: str, agent: dict[str, Any]) -> None:
    client, own, agent_id = server.client(server.key(tenant)), server.agent_client(agent), agent["agentId"]
    skill = "---\nname: notes\ndescription: Takes notes\n---\n\nTake notes.\n"
    made = (await client.post("/v0/skills", files={"file": ("SKILL.md", skill.encode())})).json()
    task = (await own.post("/v0/tasks", json={"name": "t", "schedule": "0 9 * * *", "payload": "Go."})).json()["task"]
    waits = await own.post("/devices/connect", json={"deviceId": "phone"})
    requests = [
        await own.post(f"/v0/tasks/{task['id']}/toggle"),
        await own.post(f"/v0/tasks/{task['id']}/run"),
        await own.post("/v0/devices/approve-all"),
        await client.post(f"/v0/agents/{agent_id}/domains", json={"subdomain": "ada-events"}),
        await client.post(f"/v0/agents/{agent_id}/skills", json={"skillCids": [made["skill"]["skillCid"]]}),
        await own.post("/v0/console/exec", json={"command": "date > changed"}),
        await own.post("/v0/snapshots/sync"),
    ]
    assert [answer.status_code // 100 for answer in requests] == [2] * len(requests), [one.text for one in requests]
    seen = list[tuple[str, Any]]()
    async with stream(own, params={"after": "oldest", "types": "task,device,domain,skill,snapshot"}) as lines:
        while not seen or seen[-1][0] != "snapshot.created":
            (one,) = await receive(lines, 1)
            seen.append((one["type"], one["data"].get("action", one["data"].get("state"))))
    assert waits.status_code != 200
    assert seen[:-1] == [
        ("task.changed", "created"),
        ("task.changed", "updated"),
        ("task.run", "started"),
        ("device.changed", "approved"),
        ("domain.changed", "registered"),
        ("skill.changed", "attached"),
    ]


async def test_events_say_who(server: RunningServer, tenant: str) -> None:
    """Of keys the name, of work in the background who asked for it; a gateway token learns the kinds alone."""
    client = server.client(server.key(tenant))
    made = (await client.post("/v0/agents", json={"name": "eve"})).json()["agent"]
    own, path = server.agent_client(made), f"/v0/agents/{made['agentId']}"
    await own.put("/v0/files/content", params={"path": "a.txt"}, content=b"a")
    assert (await own.post("/v0/snapshots/sync")).status_code < 300
    browser = await signed_in(server, server.key(tenant))
    renamed = await browser.send("PATCH", f"{path}/platform/metadata", json={"name": "Eve"})
    assert renamed.status_code == 200, renamed.text

    async def read(reader: httpx.AsyncClient) -> list[tuple[str, str, str | None]]:
        seen = list[tuple[str, str, str | None]]()
        async with stream(reader, params={"after": "oldest", "types": "agent,operation,snapshot"}) as lines:
            while not seen or seen[-1][:2] != ("agent.changed", "session"):
                (one,) = await receive(lines, 1)
                assert (one["actor"]["id"] is not None) == (reader is client)
                seen.append((one["type"], one["actor"]["kind"], one["actor"]["name"]))
        return seen

    mine = await read(client)
    assert {one for one in mine if one[0].startswith("agent.")} == {
        ("agent.created", "key", "test"),
        ("agent.changed", "key", "test"),
        ("agent.changed", "session", "test"),
    }
    assert ("snapshot.created", "token", None) in mine
    assert {one[1] for one in mine if one[0] == "operation.changed"} == {"key", "token"}
    assert await read(own) == [(kind, who, None) for kind, who, _ in mine]


async def test_a_gateway_token_sees_its_own_agent(
    server: RunningServer, tenant: str, agent: dict[str, Any], api: httpx.AsyncClient
) -> None:
    await upload(api, "c.txt")
    client, own = server.client(server.key(tenant)), server.agent_client(agent)
    await client.patch(f"/v0/agents/{agent['agentId']}/platform/metadata", json={"name": "new"})
    for reader, path in (
        (own, PATH),
        (own, f"{PATH}?agentId=other"),
        (client, f"/v0/agents/{agent['agentId']}/events"),
    ):
        async with stream(reader, path, headers={"Last-Event-ID": "0"}) as lines:
            seen = list[dict[str, Any]]()
            while not seen or seen[-1]["data"].get("name") != "new":
                seen += await receive(lines, 1)
            assert {one["agentId"] for one in seen} == {agent["agentId"]}


async def test_a_stream_ends_with_its_credential(server: RunningServer, tenant: str, agent: dict[str, Any]) -> None:
    client = server.client(server.key(tenant))
    minted = (await server.client(server.key(tenant), "api.localhost").post("/v3/pinata/keys", json=KEY)).json()
    token, handle = minted["JWT"], minted["pinata_api_key"]
    async with (
        asyncio.timeout(DEADLINE),
        socket(server, token) as by_key,
        socket(server, agent["gatewayToken"], host=f"{agent['agentId']}.agents.localhost") as by_token,
        stream(server.agent_client(agent)) as lines,
    ):
        await anext(lines)
        await client.post(f"/v0/agents/{agent['agentId']}/gateway-token/rotate")
        await server.client(server.key(tenant), "api.localhost").put(f"/v3/pinata/keys/{handle}")
        for opened in (by_key, by_token):
            with pytest.raises(ConnectionClosed) as ended:
                await receive_all(opened)
            assert ended.value.rcvd is not None
            assert ended.value.rcvd.code == 1008
        rest = [line async for line in lines]
    assert "event: error" in rest


async def test_tenants_and_scopes_separate(server: RunningServer, tenant: str, api: httpx.AsyncClient) -> None:
    await upload(api, "d.txt")
    blind = server.client(server.key(tenant, scopes=frozenset({"org:agents:read"})))
    stranger = server.client(server.key(f"{tenant} 2"))
    for client in (blind, stranger):
        async with client.stream("GET", PATH, params={"after": "0"}) as answer:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    await receive(answer.aiter_lines(), 1)
    no_agents = server.client(server.key(tenant, scopes=frozenset({"org:files:read"})))
    assert (await no_agents.get(PATH)).status_code == 403


async def test_refusals_of_a_stream_have_a_status(server: RunningServer, tenant: str, agent: dict[str, Any]) -> None:
    client, stranger = server.client(server.key(tenant)), server.client(server.key(f"{tenant} 2"))
    for query in ("types=weather", "after=x", "after=-1"):
        answer = await client.get(f"{PATH}?{query}")
        assert (answer.status_code, list(answer.json())) == (400, ["error"])
    assert (await server.client().get(PATH)).status_code == 401
    assert (await server.client(agent["gatewayToken"]).get(PATH)).status_code == 401
    assert (await stranger.get(f"/v0/agents/{agent['agentId']}/events")).status_code == 401
    with pytest.raises(InvalidStatus) as refused:
        async with socket(server, "nothing"):
            pass
    assert refused.value.response.status_code == 401
