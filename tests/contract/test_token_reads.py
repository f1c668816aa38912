"""Who has read an agent's gateway token, and what the revocation of a key does to it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import jwt
import pytest
from websockets.asyncio.client import ClientConnection, connect

from roost.drivers.runtime.fake import FakeRuntime
from roost.identity import gateway_tokens
from roost.identity.gateway_tokens import note_read
from tests.cli.terminal import run
from tests.contract.test_sessions import signed_in
from tests.support.server import RunningServer, running

READERS = frozenset({"org:read"})


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    folder = tmp_path_factory.mktemp("reads")
    async with running(folder / "data", runtime=FakeRuntime(folder / "run")) as server:
        yield server


@pytest.fixture
async def agent(server: RunningServer, tenant: str) -> AsyncIterator[dict[str, Any]]:
    """Make an agent with a key that no test revokes."""
    api = server.client(server.key(tenant))
    made = (await api.post("/v0/agents", json={"name": "Ada"})).json()["agent"]
    yield made
    await api.delete(f"/v0/agents/{made['agentId']}")


def key_id(token: str) -> str:
    return jwt.decode(token, options={"verify_signature": False})["jti"]


async def reads_of(server: RunningServer, tenant: str, key: str) -> list[tuple[str, bool]]:
    answer = await server.client(server.key(tenant, scopes=READERS)).get(f"/v0/keys/{key_id(key)}/token-reads")
    assert answer.status_code == 200, answer.text
    return [(one["agentName"], one["inSession"]) for one in answer.json()["agents"]]


@asynccontextmanager
async def log_stream(server: RunningServer, agent: dict[str, Any]) -> AsyncIterator[ClientConnection]:
    host = f"{agent['agentId']}.agents.localhost:{server.port}"
    url = f"ws://{host}/v0/logs?token={agent['gatewayToken']}"
    async with connect(url, host="127.0.0.1", proxy=None) as socket:
        await socket.recv()
        yield socket


async def check_closed(socket: ClientConnection) -> None:
    async with asyncio.timeout(5):
        await socket.wait_closed()
    assert socket.close_code == 1008


async def test_each_way_to_the_token_is_remembered(server: RunningServer, agent: dict[str, Any], tenant: str) -> None:
    path = f"/v0/agents/{agent['agentId']}"
    for method, target in (
        ("GET", f"{path}/gateway-token"),
        ("GET", path),
        ("POST", f"{path}/sign-in-link"),
        ("POST", f"{path}/gateway-token/rotate"),
    ):
        key = server.key(tenant)
        assert await reads_of(server, tenant, key) == []
        assert (await server.client(key).request(method, target)).status_code in (200, 201)
        assert await reads_of(server, tenant, key) == [("Ada", False)], target
    maker = server.key(tenant)
    made = (await server.client(maker).post("/v0/agents", json={"name": "Bob"})).json()["agent"]
    assert made["gatewayToken"]
    assert await reads_of(server, tenant, maker) == [("Bob", False)]
    await server.client(maker).delete(f"/v0/agents/{made['agentId']}")
    assert await reads_of(server, tenant, maker) == []


async def test_responses_without_a_token_are_not_remembered(
    server: RunningServer, agent: dict[str, Any], tenant: str
) -> None:
    path = f"/v0/agents/{agent['agentId']}"
    limited = server.key(tenant, scopes=frozenset({"org:read", "org:write"}))
    for target in ("/v0/agents", path, f"{path}/export", f"{path}/status"):
        assert (await server.client(limited).get(target)).status_code == 200
    full = server.key(tenant)
    assert (await server.client(full).get("/v0/agents")).status_code == 200
    assert await reads_of(server, tenant, limited) == await reads_of(server, tenant, full) == []


async def test_sessions_count_beside_their_key(server: RunningServer, agent: dict[str, Any], tenant: str) -> None:
    key = server.key(tenant)
    browser = await signed_in(server, key)
    shown = await browser.send("GET", f"/v0/agents/{agent['agentId']}")
    assert shown.json()["agent"]["gatewayToken"] == agent["gatewayToken"]
    assert await reads_of(server, tenant, key) == [("Ada", True)]
    await server.client(key).get(f"/v0/agents/{agent['agentId']}/gateway-token")
    assert await reads_of(server, tenant, key) == [("Ada", True), ("Ada", False)]
    ended = await server.client(key).delete("/v0/session/all")
    assert ended.json() == {"ended": 1, "agentIds": [agent["agentId"]]}


async def test_only_the_first_read_of_a_token_is_written(
    server: RunningServer, agent: dict[str, Any], tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, path = server.key(tenant), f"/v0/agents/{agent['agentId']}"
    noted: list[str] = []

    def note(connection: Any, caller: Any, agent_id: str) -> None:
        noted.append(agent_id)
        note_read(connection, caller, agent_id)

    monkeypatch.setattr(gateway_tokens, "note_read", note)
    for _ in range(3):
        for target in (path, f"{path}/gateway-token"):
            assert (await server.client(key).get(target)).status_code == 200
    assert noted == [agent["agentId"]]


async def test_a_rotated_token_was_read_by_nobody_but_who_rotated_it(
    server: RunningServer, agent: dict[str, Any], tenant: str
) -> None:
    first, second = server.key(tenant), server.key(tenant)
    path = f"/v0/agents/{agent['agentId']}/gateway-token"
    await server.client(first).get(path)
    await server.client(second).post(f"{path}/rotate")
    assert (await reads_of(server, tenant, first), await reads_of(server, tenant, second)) == ([], [("Ada", False)])
    await server.client(first).get(path)
    assert await reads_of(server, tenant, first) == [("Ada", False)]


async def test_a_revoked_key_leaves_tokens_that_are_named_and_can_be_replaced(
    server: RunningServer, agent: dict[str, Any], tenant: str
) -> None:
    leaver, owner = server.key(tenant), server.client(server.key(tenant))
    path = f"/v0/agents/{agent['agentId']}"
    agent["gatewayToken"] = (await server.client(leaver).get(f"{path}/gateway-token")).json()["token"]
    revoking = f"/v0/keys/{key_id(leaver)}/revoke"
    async with log_stream(server, agent) as socket:
        revoked = await owner.post(revoking, json={})
        named = [(one["agentId"], one["agentName"]) for one in revoked.json()["agents"]]
        assert (revoked.status_code, named) == (200, [(agent["agentId"], "Ada")])
        assert (await server.client(leaver).get(path)).status_code == 401
        assert (await server.agent_client(agent).get("/v0/logs")).status_code == 200
        again = await owner.post(revoking, json={"rotateTokens": True})
        assert [one["agentId"] for one in again.json()["agents"]] == [agent["agentId"]]
        await check_closed(socket)
    assert (await server.agent_client(agent).get("/v0/logs")).status_code == 401
    assert await reads_of(server, tenant, leaver) == []
    assert (await owner.post(revoking, json={"rotateTokens": True})).json() == {"agents": []}


async def test_who_may_revoke(server: RunningServer, tenant: str) -> None:
    path = f"/v0/keys/{key_id(server.key(tenant))}"
    for scopes in (frozenset({"org:agents:write", "org:agents:read"}), READERS, frozenset({"org:files:write"})):
        client = server.client(server.key(tenant, scopes=scopes))
        assert (await client.post(f"{path}/revoke", json={})).status_code == 403
        assert (await client.get(f"{path}/token-reads")).status_code == (200 if scopes == READERS else 403)
    editor = await signed_in(server, server.key(tenant), "editor")
    assert (await editor.send("POST", f"{path}/revoke", json={})).status_code == 403
    stranger = server.client(server.key("stranger"))
    for answer in (await stranger.post(f"{path}/revoke", json={}), await stranger.get(f"{path}/token-reads")):
        assert (answer.status_code, answer.json()) == (404, {"error": "API key not found"})
    writer = server.client(server.key(tenant, scopes=frozenset({"org:write"})))
    assert (await writer.post(f"{path}/revoke", json={})).json() == {"agents": []}


async def test_the_command_line_beside_a_server(server: RunningServer, agent: dict[str, Any], tenant: str) -> None:
    """It works on the database, and the server closes what is open."""
    leaver, folder = server.key(tenant), str(server.roost.core.settings.data)
    await server.client(leaver).get(f"/v0/agents/{agent['agentId']}")
    revoking = ("keys", "revoke", key_id(leaver), "--yes", "--data", folder)
    told = (await asyncio.to_thread(run, *revoking)).stdout
    assert f"still work; replace them with --rotate-tokens: Ada ({agent['agentId']})." in told
    async with log_stream(server, agent) as socket:
        told = (await asyncio.to_thread(run, *revoking, "--rotate-tokens")).stdout
        assert f"were replaced: Ada ({agent['agentId']})." in told
        await check_closed(socket)
    assert (await server.agent_client(agent).get("/v0/logs")).status_code == 401
    assert (await asyncio.to_thread(run, *revoking)).stdout == "Revoked.\n"
    missing = await asyncio.to_thread(run, "keys", "revoke", "x", "--yes", "--data", folder)
    assert (missing.exit_code, "There is no key 'x'" in missing.stderr) == (5, True)
    current = await server.client(server.key(tenant)).get(f"/v0/agents/{agent['agentId']}/gateway-token")
    async with log_stream(server, {**agent, "gatewayToken": current.json()["token"]}) as socket:
        await asyncio.sleep(0)
        with pytest.raises(TimeoutError):  # what is open with the new token stays
            async with asyncio.timeout(1.2):
                await socket.wait_closed()
