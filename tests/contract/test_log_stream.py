"""The log stream: access, messages, and its end (A8, A17, A18, J4, J5)."""

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from roost.identity.api_keys import ApiKeys
from tests.support.server import RunningServer

DEADLINE = 20.0


@pytest.fixture
async def agent(server: RunningServer) -> AsyncIterator[dict[str, Any]]:
    api = server.client(server.key())
    made = (await api.post("/v0/agents", json={"name": "a"})).json()["agent"]
    yield made
    await api.delete(f"/v0/agents/{made['agentId']}")


def stream(server: RunningServer, agent: dict[str, Any], path: str = "/v0/logs", **options: Any) -> connect:
    """Connect to the agent's own address unless `host` names another."""
    host = options.pop("host", f"{agent['agentId']}.agents.localhost")
    where = {} if "sock" in options else {"host": "127.0.0.1", "port": server.port}
    return connect(f"ws://{host}:{server.port}{path}", proxy=None, **where, **options)


def bearer(token: str) -> dict[str, Any]:
    return {"additional_headers": {"Authorization": f"Bearer {token}"}}


async def write(server: RunningServer, agent: dict[str, Any], *lines: str) -> None:
    """Print lines by a process of the container."""
    await program(server, agent, f"print({chr(10).join(lines)!r})")


async def program(server: RunningServer, agent: dict[str, Any], code: str) -> None:
    warden = server.roost.agents.registry.runtimes.get_warden(agent["agentId"])
    await warden.stop("writer", grace=0)
    await warden.start("writer", ["python3", "-c", code], env={}, restart=False)


async def until(socket: ClientConnection, text: str) -> list[dict[str, str]]:
    """Return the messages up to the one with `text`."""
    seen: list[dict[str, str]] = []
    async with asyncio.timeout(DEADLINE):
        while not seen or seen[-1]["message"] != text:
            seen.append(json.loads(await socket.recv()))
    return seen


async def status(opening: connect) -> int:
    """Return the status of the refusal, or 101 if the stream opened."""
    try:
        async with opening:
            return 101
    except InvalidStatus as refused:
        answer = refused.response
    assert list(json.loads(answer.body or b"{}")) == ["error"]
    assert answer.headers["X-Request-Id"]
    return answer.status_code


async def test_a_message_has_the_contracts_form(server: RunningServer, agent: dict[str, Any]) -> None:
    await write(server, agent, "ERROR app.main: it broke")
    async with stream(server, agent, f"/v0/logs?token={agent['gatewayToken']}") as socket:
        message = (await until(socket, "it broke"))[-1]
    assert list(message) == ["timestamp", "level", "source", "message"]
    assert (message["level"], message["source"]) == ("ERROR", "app/main")
    assert message["timestamp"].endswith("Z")


async def test_every_way_in(server: RunningServer, agent: dict[str, Any]) -> None:
    token, path = agent["gatewayToken"], f"/v0/agents/{agent['agentId']}/logs"
    own = f"http://{agent['agentId']}.agents.localhost:{server.port}"
    await write(server, agent, "here")
    for opening in (
        stream(server, agent, **bearer(token)),
        stream(server, agent, path, **bearer(token)),
        stream(server, agent, origin=own, additional_headers={"Cookie": f"gw_token={token}"}),
        stream(server, agent, f"{path}?token={token}", host="localhost"),
        stream(server, agent, path, host="localhost", **bearer(server.key())),
        stream(server, agent, path, host="agents.localhost", **bearer(server.key())),
    ):
        async with opening as socket:
            await until(socket, "here")


async def test_who_is_refused_before_the_upgrade(server: RunningServer, agent: dict[str, Any]) -> None:
    token, path = agent["gatewayToken"], f"/v0/agents/{agent['agentId']}/logs"
    cookie: dict[str, Any] = {"additional_headers": {"Cookie": f"gw_token={token}"}}
    local = {"host": "localhost"}
    assert await status(stream(server, agent)) == 401
    assert await status(stream(server, agent, "/v0/logs?token=rst_gw_" + "0" * 64)) == 401
    assert await status(stream(server, agent, "/v0/logs", **bearer(server.key()))) == 401
    assert await status(stream(server, agent, path, **local, **bearer(server.key("stranger")))) == 401
    assert await status(stream(server, agent, "/v0/agents/nobody/logs", **local, **bearer(server.key()))) == 404
    for origin in (None, "null", "http://evil.example", "http://other.agents.localhost"):
        assert await status(stream(server, agent, origin=origin, **cookie)) == 403, origin
    assert await status(stream(server, agent, "/v0/nothing", **bearer(token))) == 404
    assert await status(stream(server, agent, "/v0/logs?level=odd", **bearer(token))) == 400


async def test_only_what_is_wanted_comes(server: RunningServer, agent: dict[str, Any]) -> None:
    await write(server, agent, "INFO a.b: one", "WARN a.b: two", "ERROR other: three", "FATAL a: last")
    async with stream(server, agent, "/v0/logs?level=warn&source=a", **bearer(agent["gatewayToken"])) as socket:
        assert [message["message"] for message in await until(socket, "last")] == ["two", "last"]
    text = (await server.agent_client(agent).get("/v0/logs?level=fatal")).json()["logs"]
    assert text.endswith("[a] FATAL last")
    assert "two" not in text


async def test_live_lines_continue_over_restarts(server: RunningServer, agent: dict[str, Any]) -> None:
    async with stream(server, agent, **bearer(agent["gatewayToken"])) as socket:
        await write(server, agent, "before")
        await until(socket, "before")
        assert (await server.agent_client(agent).post("/v0/restart")).status_code == 200
        await write(server, agent, "between")
        assert "before" not in [message["message"] for message in await until(socket, "between")]


async def test_nothing_private_is_in_it(server: RunningServer, agent: dict[str, Any]) -> None:
    token = agent["gatewayToken"]
    await write(server, agent, f"my token is {token}", "\x1b]0;x\x07 \x1b[31mred\x1b[0m", "x" * 100_000, "end")
    async with stream(server, agent, **bearer(token)) as socket:
        seen = await until(socket, "end")
    told = json.dumps(seen)
    assert token not in told
    assert "[redacted]" in told
    assert "\\u001b" not in told
    assert max(len(message["message"]) for message in seen) < 17_000


@pytest.mark.parametrize("change", ["rotate", "delete"])
async def test_an_old_token_ends_its_streams_and_no_others(server: RunningServer, change: str) -> None:
    api = server.client(server.key())
    agent = (await api.post("/v0/agents", json={"name": "streams"})).json()["agent"]
    path = f"/v0/agents/{agent['agentId']}"
    await write(server, agent, "here")
    async with (
        stream(server, agent, f"/v0/logs?token={agent['gatewayToken']}") as own,
        stream(server, agent, f"{path}/logs", host="localhost", **bearer(agent["gatewayToken"])) as local,
        stream(server, agent, f"{path}/logs", host="agents.localhost", **bearer(server.key())) as owner,
    ):
        for socket in (own, local, owner):
            await until(socket, "here")
        began = time.monotonic()
        if change == "rotate":
            await api.post(f"{path}/gateway-token/rotate")
        else:
            await api.delete(path)
        for socket in (own, local):
            assert await closed(socket) == 1008
        assert time.monotonic() - began < DEADLINE
        if change == "rotate":
            await write(server, agent, "still here")
            await until(owner, "still here")
            await api.delete(path)
        assert await closed(owner) == 1001
        assert await status(stream(server, agent, f"/v0/logs?token={agent['gatewayToken']}")) == 401


async def test_a_revoked_key_ends_its_streams_and_no_others(server: RunningServer, agent: dict[str, Any]) -> None:
    await write(server, agent, "here")
    path, key = f"/v0/agents/{agent['agentId']}/logs", server.key()
    caller = await server.roost.core.identity.api_keys.verify(key)
    async with (
        stream(server, agent, path, host="agents.localhost", **bearer(key)) as revoked,
        stream(server, agent, path, host="agents.localhost", **bearer(server.key())) as other,
    ):
        await until(revoked, "here")
        await until(other, "here")
        server.roost.core.db.run(lambda connection: ApiKeys.delete(connection, caller.key_id or ""))
        assert await closed(revoked) == 1008
        await write(server, agent, "still here")
        await until(other, "still here")


async def closed(socket: ClientConnection) -> int | None:
    async with asyncio.timeout(DEADLINE):
        with suppress(ConnectionClosed):
            async for _ in socket:
                pass
        await socket.wait_closed()
    return socket.close_code


async def test_one_who_never_reads_is_dropped_and_disturbs_nobody(server: RunningServer, agent: dict[str, Any]) -> None:
    """Its connection buffers a little; missed messages are not kept."""
    lazy = socket.socket()
    lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    lazy.setblocking(False)
    await asyncio.get_running_loop().sock_connect(lazy, ("127.0.0.1", server.port))
    asleep = stream(server, agent, sock=lazy, max_queue=1, **bearer(agent["gatewayToken"]))
    async with asleep as slow, stream(server, agent, **bearer(agent["gatewayToken"])) as quick:
        for turn in range(4):
            await program(server, agent, f"print(('x' * 15_000 + chr(10)) * 80 + 'turn {turn}')")
            await until(quick, f"turn {turn}")
        await slow.recv()
        assert await closed(slow) == 1013


async def test_so_many_streams_and_no_more(server: RunningServer, agent: dict[str, Any]) -> None:
    await write(server, agent, "first")
    async with AsyncExitStack() as open_ones:
        sockets = [
            await open_ones.enter_async_context(stream(server, agent, **bearer(agent["gatewayToken"])))
            for _ in range(256)
        ]
        assert await status(stream(server, agent, **bearer(agent["gatewayToken"]))) == 429
        await write(server, agent, "for all")
        await asyncio.gather(*(until(one, "for all") for one in sockets))
    async with asyncio.timeout(DEADLINE):
        while await status(stream(server, agent, **bearer(agent["gatewayToken"]))) == 429:
            await asyncio.sleep(0.01)


async def test_messages_of_a_client_are_ignored(server: RunningServer, agent: dict[str, Any]) -> None:
    async with stream(server, agent, **bearer(agent["gatewayToken"])) as socket:
        for _ in range(50):
            await socket.send("x" * 16_000)
        await write(server, agent, "still")
        await until(socket, "still")
        await socket.send("x" * 20_000)
        assert await closed(socket) == 1009
