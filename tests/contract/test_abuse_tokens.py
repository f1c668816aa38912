"""Attacks with gateway tokens: after a rotation, at the wrong address, joined with others (A6-A9, A13, A15-A20)."""

import asyncio
import base64
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from uuid import uuid4

import httpx2 as httpx
import pytest

from tests.identity.test_api_keys import resign_token
from tests.support.server import RunningServer

Ended = Callable[[], Awaitable[None]]
"""Waits until what was opened has ended, and fails unless it was ended from here: by itself it lasts a minute or so."""


@pytest.fixture
async def agent(server: RunningServer) -> AsyncIterator[dict[str, Any]]:
    api = server.client(server.key())
    made = (await api.post("/v0/agents", json={"name": "a"})).json()["agent"]
    yield made
    await api.delete(f"/v0/agents/{made['agentId']}")


async def rotate(server: RunningServer, agent: dict[str, Any]) -> str:
    answer = await server.client(server.key()).post(f"/v0/agents/{agent['agentId']}/gateway-token/rotate")
    assert answer.status_code == 200, answer.text
    return answer.json()["token"]


def clients_with_token(server: RunningServer, agent: dict[str, Any], token: str) -> list[tuple[httpx.AsyncClient, str]]:
    """Return each way to send a token: a client, and the query that it needs."""
    own, local = f"{agent['agentId']}.agents.localhost", "localhost"
    cookie = server.client(host=own)
    cookie.headers["Cookie"] = f"gw_token={token}"
    return [
        (server.client(token, own), ""),
        (server.client(host=own), f"token={token}"),
        (server.client(host=own), f"%74oken={token}&x=1&token="),
        (cookie, ""),
        (server.client(token, local), ""),
    ]


async def test_an_old_token_opens_nothing_any_more(server: RunningServer, agent: dict[str, Any]) -> None:
    old = agent["gatewayToken"]
    paths = [f"/v0/agents/{agent['agentId']}/logs", f"/v0/agents/{agent['agentId']}", "/v0/llm/v1/models"]

    async def statuses(token: str) -> set[int]:
        answers = [
            (await client.get(f"{path}?{query}")).status_code
            for client, query in clients_with_token(server, agent, token)
            for path in paths
        ]
        proxied = [
            (await client.get(f"/v1/models?{query}")).status_code
            for client, query in clients_with_token(server, agent, token)[:4]
        ]
        return {*answers, *proxied}

    assert await statuses(old) == {200}
    new = await rotate(server, agent)
    assert await statuses(old) == {401}
    assert await statuses(new) == {200}
    basic = base64.b64encode(f"x:{old}".encode()).decode()
    answer = await server.client(host=f"{agent['agentId']}.agents.localhost").get(
        "/v0/logs", headers={"Authorization": f"Basic {basic}"}
    )
    assert answer.status_code == 401


async def _stream(client: httpx.AsyncClient, method: str, path: str, **options: Any) -> Ended:
    """Open a request whose response has started."""
    response = await client.send(client.build_request(method, path, **options), stream=True)
    assert response.status_code == 200
    pieces = response.aiter_bytes()
    assert await anext(pieces)

    async def ended() -> None:
        with pytest.raises(httpx.HTTPError):
            async for _ in pieces:
                pass
        await response.aclose()

    return ended


async def _websocket(server: RunningServer, agent: dict[str, Any]) -> Ended:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(
        f"GET /ws?token={agent['gatewayToken']} HTTP/1.1\r\nHost: {agent['agentId']}.agents.localhost\r\n"
        "Connection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Key: eA==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
    )
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101")

    async def ended() -> None:
        try:
            await reader.read()
        except ConnectionError:
            pass
        finally:
            writer.close()

    return ended


async def _exec(client: httpx.AsyncClient, path: str) -> Ended:
    task = asyncio.create_task(client.post(path, json={"command": "sleep 50"}))

    async def ended() -> None:
        answer = await task
        assert (answer.status_code, answer.json()) == (401, {"error": "Unauthorized"})

    return ended


@pytest.mark.parametrize("change", ["rotate", "delete"])
async def test_streams_opened_by_an_old_token_are_closed(server: RunningServer, change: str) -> None:
    api = server.client(server.key())
    agent = (await api.post("/v0/agents", json={"name": "streams"})).json()["agent"]
    token, agent_id = agent["gatewayToken"], agent["agentId"]
    chat = {"model": "scripted", "stream": True, "messages": [{"role": "user", "content": "/slow 900"}]}
    own, local = server.agent_client(agent), server.client(token, "localhost")
    opened = [
        await _stream(own, "GET", "/slow?count=500&every=0.1"),
        await _stream(own, "POST", "/v1/chat/completions", json=chat),
        await _stream(own, "POST", "/v0/llm/v1/chat/completions", json=chat),
        await _stream(local, "POST", "/v0/llm/v1/chat/completions", json=chat),
        await _websocket(server, agent),
        await _exec(own, "/v0/console/exec"),
        await _exec(local, f"/v0/agents/{agent_id}/console/exec"),
    ]
    await _until_sleeping(server, agent_id, 2)
    deleting: asyncio.Task[httpx.Response] | None = None
    if change == "rotate":
        await rotate(server, agent)
    else:
        deleting = asyncio.create_task(api.delete(f"/v0/agents/{agent_id}"))
        while (await server.agent_client(agent).get("/v0/logs")).status_code == 200:
            await asyncio.sleep(0.01)
    async with asyncio.timeout(20):
        await asyncio.gather(*(ended() for ended in opened))
    if deleting is None:
        await _until_sleeping(server, agent_id, 0)  # the commands ended with their connections
        deleting = asyncio.create_task(api.delete(f"/v0/agents/{agent_id}"))
    assert (await deleting).status_code == 200


async def _until_sleeping(server: RunningServer, agent_id: str, count: int) -> None:
    """Wait until that many `sleep` commands run in the container."""
    api = server.client(server.key())
    looking = {"command": "cat /proc/[0-9]*/comm | grep -c '^sleep$'"}
    async with asyncio.timeout(20):
        while True:
            seen = (await api.post(f"/v0/agents/{agent_id}/console/exec", json=looking)).json()
            if seen["stdout"].strip() == str(count):
                return


async def test_requests_of_the_owner_outlive_a_rotation(server: RunningServer, agent: dict[str, Any]) -> None:
    api = server.client(server.key())
    path = f"/v0/agents/{agent['agentId']}/console/exec"
    waiting = {"command": "sleep 50 & echo $! > waiting; wait; echo done"}
    running_on = asyncio.create_task(api.post(path, json=waiting))
    await _until_sleeping(server, agent["agentId"], 1)
    await rotate(server, agent)
    await api.post(path, json={"command": "kill $(cat waiting)"})
    assert (await running_on).json()["stdout"] == "done\n"


async def test_a_rotation_among_a_hundred_requests(server: RunningServer, agent: dict[str, Any]) -> None:
    own = server.agent_client(agent)
    path = f"/v0/agents/{agent['agentId']}/gateway-token"
    api = server.client(server.key())
    requests = [asyncio.create_task(_status(own, "/v0/logs" if i % 2 else "/v1/models")) for i in range(100)]
    rotations = await asyncio.gather(*(rotate(server, agent) for _ in range(5)))
    assert set(await asyncio.gather(*requests)) <= {200, 401, None}
    current = (await api.get(path)).json()["token"]
    assert current in rotations
    opens = [
        (await server.agent_client(agent | {"gatewayToken": token}).get("/v0/logs")).status_code for token in rotations
    ]
    assert sorted(opens) == [200, 401, 401, 401, 401]


async def _status(client: httpx.AsyncClient, path: str) -> int | None:
    """Return the status, or None if the connection was closed, as a rotation does with open ones."""
    try:
        return (await client.get(path)).status_code
    except httpx.TransportError:
        return None


async def test_the_address_of_an_unknown_agent(server: RunningServer, agent: dict[str, Any]) -> None:
    for host in ("b" * 16 + ".agents.localhost", "x.agents.localhost"):
        for client in (
            server.client(host=host),
            server.client(agent["gatewayToken"], host),
            server.client(server.key(), host),
        ):
            for path in ("/", "/v0/logs", "/v1/models", f"/v0/agents/{agent['agentId']}/logs"):
                assert (await client.get(path)).status_code == 401
    for host in (
        f"{agent['agentId']}.{agent['agentId']}.agents.localhost",
        ".agents.localhost",
        "a_b.agents.localhost",
    ):
        assert (await server.client(agent["gatewayToken"], host).get("/v0/logs")).status_code == 404


async def test_a_key_of_a_tenant_that_does_not_exist(server: RunningServer) -> None:
    core = server.roost.core
    token = await resign_token(core.db, core.identity.api_keys, server.key(), sub=str(uuid4()))
    answer = await server.client(token).get("/v0/agents")
    assert (answer.status_code, answer.json()) == (401, {"error": "Missing userId"})


async def test_two_credentials_are_never_joined(server: RunningServer, agent: dict[str, Any]) -> None:
    own = f"{agent['agentId']}.agents.localhost"
    good = agent["gatewayToken"]
    for header, query, cookie, status in (
        ("wrong", good, good, 401),
        (good, "wrong", "wrong", 200),
        (None, "wrong", good, 401),
        (None, good, "wrong", 200),
        (server.key(), good, good, 401),
    ):
        client = server.client(header, own)
        answer = await client.get("/v0/logs", params={"token": query}, headers={"Cookie": f"gw_token={cookie}"})
        assert answer.status_code == status, (header, query, cookie)


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://agents.localhost"])
async def test_a_foreign_page_changes_nothing(server: RunningServer, agent: dict[str, Any], origin: str) -> None:
    client = server.client(host=f"{agent['agentId']}.agents.localhost")
    client.headers.update({"Cookie": f"gw_token={agent['gatewayToken']}", "Origin": origin})
    for path, body in (("/v0/console/exec", {"command": "touch hit"}), ("/v0/restart", {}), ("/echo", {})):
        assert (await client.post(path, json=body)).status_code == 403
    handshake = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    assert (await client.get("/ws", headers={**handshake, "Sec-WebSocket-Key": "eA=="})).status_code == 403
    assert (await client.get("/v0/logs", headers={**handshake, "Sec-WebSocket-Key": "eA=="})).status_code in {400, 403}
    files = server.agent_client(agent)
    assert (await files.get("/v0/files?path=hit")).status_code == 404


async def test_who_says_who_he_is_is_not_believed(server: RunningServer, agent: dict[str, Any]) -> None:
    claims = {
        "X-Forwarded-For": "127.0.0.1",
        "X-Role": "admin",
        "X-Tenant-Id": agent["userId"],
        "X-Relay-Agent": agent["agentId"],
    }
    stranger = server.client(server.key("stranger"))
    path = f"/v0/agents/{agent['agentId']}"
    assert (await stranger.get(path, headers=claims)).status_code == 401
    reader = server.client(server.key(scopes=frozenset({"org:agents:read"})))
    answer = await reader.post("/v0/agents", json={"name": "x", "scope": "org:write", "role": "owner"}, headers=claims)
    assert answer.status_code == 403
    assert (await reader.get(path)).json()["agent"]["gatewayToken"] is None
    assert (await server.client(host="localhost").get("/metrics", headers=claims)).status_code == 404


async def test_ids_cannot_be_guessed_from_another(server: RunningServer, agent: dict[str, Any]) -> None:
    """Public ids have 79 random bits (see the decision on ids), secrets have 256."""
    ids = {agent["agentId"]}
    assert re.fullmatch(r"[a-z2-9]{16}", agent["agentId"])
    tokens = {await rotate(server, agent) for _ in range(20)}
    assert len(tokens) == 20
    assert all(re.fullmatch(r"rst_gw_[0-9a-f]{64}", token) for token in tokens)
    stranger = server.client(server.key("stranger"))
    for guess in ("a" * 16, "1", "0", next(iter(ids))[:-1]):
        assert (await stranger.get(f"/v0/agents/{guess}")).status_code == 404


async def test_a_token_in_the_address_leaves_it_before_a_page_is_shown(
    server: RunningServer, agent: dict[str, Any]
) -> None:
    browser = server.client(host=f"{agent['agentId']}.agents.localhost")
    answer = await browser.get(f"/page?a=1&token={agent['gatewayToken']}", headers={"Accept": "text/html"})
    assert answer.status_code == 303
    assert answer.headers["Location"] == f"http://{agent['agentId']}.agents.localhost:{server.port}/page?a=1"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert all(mark in answer.headers["Set-Cookie"] for mark in ("HttpOnly", "SameSite=Lax", "Path=/"))


async def test_the_gateway_sees_the_token_nowhere(server: RunningServer, agent: dict[str, Any]) -> None:
    token = agent["gatewayToken"]
    client = server.client(host=f"{agent['agentId']}.agents.localhost")
    headers = {"Cookie": f"a=1; gw_token={token}; b=2", "Referer": f"http://x.example/?token={token}&y=1"}
    seen = await client.get(f"/echo?token={token}&q=1", headers=headers)
    assert seen.status_code == 200
    assert token not in seen.text
    assert "q=1" in seen.text


@pytest.mark.parametrize(
    ("query", "cookie"),
    [
        ("token=x" + "&a" * 5000, ""),
        ("token=%ff%fe&" + "token=" * 2000, ""),
        ("", 'gw_token="' + "\\a" * 25_000 + '"'),
        ("", 'gw_token="' + '\\"' * 25_000 + '"'),
        ("", "gw_token=" + ";gw_token=" * 3000),
        ("", "a[]=(; " * 5000 + "gw_token=x"),
    ],
    ids=["many fields", "bad text", "escapes", "quotes", "many cookies", "odd cookies"],
)
async def test_a_hostile_credential_costs_next_to_nothing(
    server: RunningServer, agent: dict[str, Any], query: str, cookie: str
) -> None:
    """No credential causes a 500; the test would take minutes if one of them cost a second."""
    headers = {"Cookie": cookie} if cookie else {}
    for host in (f"{agent['agentId']}.agents.localhost", "agents.localhost"):
        client = server.client(host=host)
        for path in ("/v0/agents", "/v1/models"):
            answers = await asyncio.gather(*(client.get(f"{path}?{query}", headers=headers) for _ in range(20)))
            assert {answer.status_code for answer in answers} <= {401, 404, 429}
