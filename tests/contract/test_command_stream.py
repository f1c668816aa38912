"""Commands over a WebSocket: input and output as they come, exit codes, access, and ends."""

import asyncio
import json
from typing import Any
from urllib.parse import urlencode

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from roost.identity.api_keys import ApiKeys
from tests.agents.lifecycle.workflows.lifecycle_env import until
from tests.support.server import RunningServer

DEADLINE = 20.0


@pytest.fixture(scope="module")
async def agent(server: RunningServer) -> dict[str, Any]:
    return (await server.client(server.key()).post("/v0/agents", json={"name": "a"})).json()["agent"]


def stream(server: RunningServer, agent: dict[str, Any], command: str, **query: Any) -> connect:
    """Connect by the agent's id with a service key, or with the credential in `token`."""
    token = query.pop("token", None) or server.key()
    path = f"/v0/agents/{agent['agentId']}/console/exec?" + urlencode({"command": command, **query})
    headers = {"Authorization": f"Bearer {token}"}
    return connect(
        f"ws://localhost:{server.port}{path}", host="127.0.0.1", proxy=None, additional_headers=headers, max_size=None
    )


async def finish(socket: ClientConnection) -> tuple[bytes, bytes, dict[str, Any]]:
    """Return output, errors and the end of a command."""
    seen = {1: b"", 2: b""}
    async with asyncio.timeout(DEADLINE):
        async for message in socket:
            if isinstance(message, str):
                return seen[1], seen[2], json.loads(message)
            seen[message[0]] += message[1:]
    raise AssertionError("the stream ended without an exit code")


async def run(server: RunningServer, agent: dict[str, Any], command: str, **query: Any) -> dict[str, Any]:
    async with stream(server, agent, command, **query) as socket:
        return (await finish(socket))[2]


async def status(server: RunningServer, agent: dict[str, Any], command: str, **query: Any) -> tuple[int, str]:
    with pytest.raises(InvalidStatus) as refused:
        await stream(server, agent, command, **query)
    return refused.value.response.status_code, json.loads(refused.value.response.body or b"")["error"]


async def test_output_and_exit_code(server: RunningServer, agent: dict[str, Any]) -> None:
    async with stream(server, agent, "echo out; echo err >&2; pwd; exit 3", cwd=".") as socket:
        out, err, end = await finish(socket)
        with pytest.raises(ConnectionClosed) as closed:
            await socket.recv()
    assert (out.splitlines()[0], err, end) == (b"out", b"err\n", {"exitCode": 3, "timedOut": False})
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1000


async def test_input_and_output_alternate(server: RunningServer, agent: dict[str, Any]) -> None:
    async with stream(server, agent, "while read line; do echo got $line; done", stdin="true") as socket:
        for word in (b"one", b"two"):
            await socket.send(b"\0" + word + b"\n")
            assert await asyncio.wait_for(socket.recv(), DEADLINE) == b"\1got " + word + b"\n"
        await socket.send(b"\0")
        assert (await finish(socket))[2] == {"exitCode": 0, "timedOut": False}


async def test_large_input_and_output_arrive_whole(server: RunningServer, agent: dict[str, Any]) -> None:
    data = bytes(range(256)) * 16_384  # 4 MiB, beyond every buffer on the way

    async def send(socket: ClientConnection) -> None:
        for start in range(0, len(data), 15_000):
            await socket.send(b"\0" + data[start : start + 15_000])
        await socket.send(b"\0")

    async with stream(server, agent, "cat", stdin="true") as socket:
        sending = asyncio.create_task(send(socket))
        assert (await finish(socket))[0] == data
        await sending


async def test_without_stdin_the_input_is_empty(server: RunningServer, agent: dict[str, Any]) -> None:
    assert await run(server, agent, "cat") == {"exitCode": 0, "timedOut": False}


async def test_a_command_that_leaves_its_input_unread_ends(server: RunningServer, agent: dict[str, Any]) -> None:
    async with stream(server, agent, "sleep 0.2; exit 5", stdin="true") as socket:
        sending = asyncio.create_task(_send_until_closed(socket))
        assert (await finish(socket))[2]["exitCode"] == 5
        sending.cancel()


async def _send_until_closed(socket: ClientConnection) -> None:
    while True:
        await socket.send(b"\0" + b"x" * 15_000)


async def test_timeout_ends_the_command(server: RunningServer, agent: dict[str, Any]) -> None:
    assert await run(server, agent, "sleep 60", timeoutSeconds=0.2) == {"exitCode": 124, "timedOut": True}


async def test_a_disconnect_ends_the_command(server: RunningServer, agent: dict[str, Any]) -> None:
    async with stream(server, agent, "echo started; exec sleep 61.5") as socket:
        assert await asyncio.wait_for(socket.recv(), DEADLINE) == b"\1started\n"
    warden = server.roost.agents.registry.runtimes.get_warden(agent["agentId"])

    async def is_gone() -> bool:
        return (await warden.exec(["pgrep", "-f", "sleep 61[.]5"])).exit_code == 1

    await until(is_gone)


async def test_other_messages_are_ignored(server: RunningServer, agent: dict[str, Any]) -> None:
    async with stream(server, agent, "cat", stdin="true") as socket:
        for message in ("text", b"", b"\7odd", b"\0in", b"\0"):
            await socket.send(message)
        assert (await finish(socket))[0] == b"in"


async def test_rejections_before_the_upgrade(server: RunningServer, agent: dict[str, Any]) -> None:
    assert await status(server, agent, " ") == (400, "Invalid command")
    assert await status(server, agent, "true", cwd="/etc") == (400, "Invalid command")
    assert (await status(server, agent, "true", timeoutSeconds=601))[0] == 400
    assert (await status(server, agent, "true", token="x"))[0] == 401
    assert (await status(server, agent, "true", token=server.key("stranger")))[0] == 401
    assert (await status(server, {"agentId": "nobody"}, "true"))[0] == 404


async def test_the_gateway_token_is_accepted(server: RunningServer, agent: dict[str, Any]) -> None:
    assert (await run(server, agent, "exit 6", token=agent["gatewayToken"]))["exitCode"] == 6


async def test_a_revoked_key_ends_its_command(server: RunningServer, agent: dict[str, Any]) -> None:
    key = server.key()
    caller = await server.roost.core.identity.api_keys.verify(key)
    async with stream(server, agent, "echo started; sleep 60", token=key) as socket:
        await asyncio.wait_for(socket.recv(), DEADLINE)
        server.roost.core.db.run(lambda connection: ApiKeys.delete(connection, caller.key_id or ""))
        with pytest.raises(ConnectionClosed) as closed:
            await asyncio.wait_for(socket.recv(), DEADLINE)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1008
