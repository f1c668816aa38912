"""The terminal of an agent over a WebSocket: messages, reconnects, access, hostile clients, and its end."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from roost.agents.workspace.commands import service
from roost.identity.api_keys import ApiKeys
from roost.warden_client.client import WardenClient
from tests.agents.lifecycle.workflows.lifecycle_env import until
from tests.support.server import RunningServer

DEADLINE = 20.0
Agent = dict[str, Any]


class Terminal:
    """Client of a terminal: its session, the output since the last match, and the offset of what comes next."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.session = ""
        self.first: int | None = None
        self.next = 0
        self.text = b""

    async def type(self, text: bytes) -> None:
        await self.socket.send(text)

    async def tell(self, **message: Any) -> None:
        await self.socket.send(json.dumps(message))

    async def find(self, pattern: bytes) -> re.Match[bytes]:
        try:
            async with asyncio.timeout(DEADLINE):
                while not (found := re.search(pattern, self.text)):
                    assert await self._receive() is None, self.text
        except TimeoutError:
            pytest.fail(f"no {pattern!r} within {DEADLINE:g} seconds, but up to offset {self.next}: {self.text!r}")
        self.text = self.text[found.end() :]
        return found

    async def exit_code(self) -> int:
        async with asyncio.timeout(DEADLINE):
            while (code := await self._receive()) is None:
                continue
        return code

    async def close_code(self) -> tuple[int, str]:
        """Return how the server closes the connection."""
        async with asyncio.timeout(DEADLINE):
            with suppress(ConnectionClosed):
                while True:
                    await self._receive()
        return self.socket.close_code or 0, self.socket.close_reason or ""

    async def _receive(self) -> int | None:
        message = await self.socket.recv()
        if isinstance(message, bytes):
            offset, data = int.from_bytes(message[:8]), message[8:]
            self.first = offset if self.first is None else self.first
            assert self.next in (0, offset)
            self.next = offset + len(data)
            self.text += data
            return None
        event = json.loads(message)
        if event["type"] == "session":
            self.session = event["session"]
            return None
        assert event.keys() == {"type", "exitCode"}
        assert event["type"] == "exit"
        return event["exitCode"]


@pytest.fixture(scope="module")
async def agent(server: RunningServer) -> Agent:
    return await make_agent(server)


async def make_agent(server: RunningServer) -> Agent:
    return (await server.client(server.key()).post("/v0/agents", json={"name": "a"})).json()["agent"]


def dial(server: RunningServer, agent: Agent, **query: Any) -> connect:
    token = query.pop("token", None) or server.key()
    path = f"/v0/agents/{agent['agentId']}/console/stream?" + urlencode(query)
    headers = {"Authorization": f"Bearer {token}"}
    return connect(
        f"ws://localhost:{server.port}{path}", host="127.0.0.1", proxy=None, additional_headers=headers, max_size=None
    )


@asynccontextmanager
async def open_terminal(server: RunningServer, agent: Agent, **query: Any) -> AsyncIterator[Terminal]:
    async with dial(server, agent, **query) as socket:
        yield Terminal(socket)


async def status(server: RunningServer, agent: Agent, **query: Any) -> tuple[int, str]:
    with pytest.raises(InvalidStatus) as refused:
        await dial(server, agent, **query)
    return refused.value.response.status_code, json.loads(refused.value.response.body or b"")["error"]


async def test_a_login_shell(server: RunningServer, agent: Agent) -> None:
    """Resize after the prompt: before it, readline reads the size and writes it back, and undoes a change between."""
    async with open_terminal(server, agent, cols=100, rows=30) as terminal:
        await terminal.type(b"echo $TERM,$LANG,${NO_COLOR-none},$SHELL,$0; stty size; shopt login_shell\n")
        await terminal.find(rb"xterm-256color,C.UTF-8,none,\S*/bash,\S+\r\n30 100\r\nlogin_shell\s+on\r\n")
        await terminal.find(rb"[$#] ")
        await terminal.tell(type="resize", cols=132, rows=43)
        await terminal.type(b"stty size\n")
        await terminal.find(rb"43 132\r\n")
        await terminal.type(b"exit 7\n")
        assert await terminal.exit_code() == 7
        assert await terminal.close_code() == (1000, "")


async def test_it_has_the_secrets_of_commands(server: RunningServer, agent: Agent) -> None:
    api = server.client(server.key())
    secret = (await api.post("/v0/secrets", json={"name": "WORD", "value": "open-sesame"})).json()["secret"]
    body = {"secretIds": [secret["id"]]}
    assert (await api.post(f"/v0/agents/{agent['agentId']}/secrets", json=body)).status_code == 200
    async with open_terminal(server, agent, command="echo $WORD; pwd") as terminal:
        await terminal.find(rb"open-sesame\r\n\S*workspace\r\n")
        assert await terminal.exit_code() == 0


async def test_signals_reach_the_program(server: RunningServer, agent: Agent) -> None:
    async with open_terminal(server, agent, command="trap 'exit 9' INT; echo ready; sleep 1000 & wait") as terminal:
        await terminal.find(b"ready")
        await terminal.tell(type="signal", signal="INT")
        assert await terminal.exit_code() == 9


async def test_a_session_continues_after_a_lost_connection(server: RunningServer, agent: Agent) -> None:
    async with open_terminal(server, agent, command="printf 0123456789; read x; echo got $x; exit 3") as terminal:
        await terminal.find(b"9")
        terminal.socket.transport.abort()
    async with open_terminal(server, agent, session=terminal.session, after=6, cols=90) as again:
        await again.find(b"6789")
        assert again.first == 6
        await again.type(b"it\n")
        await again.find(b"got it")
        assert await again.exit_code() == 3
    async with open_terminal(server, agent, session=terminal.session) as late:  # what was lost before the client got it
        await late.find(b"got it")
        assert await late.exit_code() == 3


async def test_a_second_client_takes_the_session(server: RunningServer, agent: Agent) -> None:
    async with open_terminal(server, agent, command="echo here; cat") as first:
        await first.find(b"here")
        async with open_terminal(server, agent, session=first.session) as second:
            await second.find(b"here")
            assert await first.close_code() == (1001, "Another client has connected to the terminal session")
            await second.type(b"\x04")
            assert await second.exit_code() == 0


async def test_a_session_of_another_agent_is_unknown(server: RunningServer, agent: Agent) -> None:
    other = await make_agent(server)
    async with open_terminal(server, agent, command="echo here; cat") as mine:
        await mine.find(b"here")
        async with open_terminal(server, other, session=mine.session) as stolen:
            assert await stolen.close_code() == (1001, "Terminal session not found")
        async with open_terminal(server, agent, session="0" * 32) as unknown:
            assert await unknown.close_code() == (1001, "Terminal session not found")
        assert await status(server, agent, session=mine.session, token=other["gatewayToken"]) == (401, "Unauthorized")
        await mine.type(b"\x04")
        assert await mine.exit_code() == 0
    await server.client(server.key()).delete(f"/v0/agents/{other['agentId']}")


async def test_rejections_before_the_upgrade(server: RunningServer, agent: Agent) -> None:
    for query in (
        *({"cols": 0}, {"rows": 0}, {"cols": 1001}, {"rows": "x"}, {"after": -1}, {"after": 2**60}, {"session": ""}),
        *({"session": "x" * 65}, {"command": " "}, {"command": ""}, {"command": "a\0b"}),
    ):
        assert (await status(server, agent, **query))[0] == 400, query
    assert (await status(server, agent, token="x"))[0] == 401
    assert (await status(server, agent, token=server.key("stranger")))[0] == 401
    assert (await status(server, {"agentId": "nobody"}))[0] == 404


@pytest.mark.parametrize(
    "message",
    [
        "text",
        "[]",
        "{}",
        '{"type": "resize"}',
        '{"type": "resize", "cols": 0, "rows": 0}',
        '{"type": "resize", "cols": 100000, "rows": 24}',
        '{"type": "resize", "cols": "80", "rows": 24}',
        '{"type": "signal", "signal": "STOP"}',
        '{"type": "acknowledge", "offset": -1}',
        '{"type": "exit", "exitCode": 0}',
        "[" * 10_000,
    ],
)
async def test_an_invalid_message_ends_the_connection_and_not_the_session(
    server: RunningServer, agent: Agent, message: str
) -> None:
    async with open_terminal(server, agent, command="echo here; cat") as terminal:
        await terminal.find(b"here")
        await terminal.socket.send(message)
        code, reason = await terminal.close_code()
        assert (code, reason.startswith("Invalid message")) == (1007, True)
    async with open_terminal(server, agent, session=terminal.session) as again:
        await again.type(b"\x04")
        assert await again.exit_code() == 0


async def test_too_large_a_message(server: RunningServer, agent: Agent) -> None:
    async with open_terminal(server, agent, command="echo here; cat") as terminal:
        await terminal.find(b"here")
        await terminal.type(b"x" * 100_000)
        assert (await terminal.close_code())[0] == 1009


async def test_a_large_paste_arrives_whole(server: RunningServer, agent: Agent) -> None:
    command = "stty raw -echo; echo ready; head -c 102400 | cksum"
    async with open_terminal(server, agent, command=command) as terminal:
        await terminal.find(b"ready")
        for _ in range(10):
            await terminal.type(b"0123456789abcdef" * 640)
        await terminal.find(rb"\d+ 102400\r?\n")
        assert await terminal.exit_code() == 0


async def test_a_flood_waits_for_a_slow_reader(server: RunningServer, agent: Agent) -> None:
    """Also one that reads but does not process: it acknowledges."""
    async with open_terminal(server, agent, command="read x; yes 0123456789 | head -c 3000000") as terminal:
        await terminal.tell(type="acknowledge", offset=0)
        await terminal.type(b"\n")
        reading = asyncio.create_task(terminal.exit_code())
        before = -1
        while before != terminal.next or not before:
            before = terminal.next
            await asyncio.sleep(0.2)
        assert before < 128 * 1024
        while not reading.done():
            await terminal.tell(type="acknowledge", offset=terminal.next)
            await asyncio.sleep(0.001)
        assert await reading == 0
        assert terminal.next >= 3_000_000


async def test_too_many_terminals(server: RunningServer) -> None:
    agent = await make_agent(server)
    opened = [await dial(server, agent, command="cat") for _ in range(8)]
    assert await status(server, agent, command="cat") == (429, "The agent has too many open terminals")
    for socket in opened:
        await socket.close()
    async with open_terminal(server, agent, command="exit 2") as terminal:
        assert await terminal.exit_code() == 2
    await server.client(server.key()).delete(f"/v0/agents/{agent['agentId']}")


async def test_a_rotated_token_ends_the_terminal_and_later_its_processes(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "GRACE_SECONDS", 0.5)
    agent = await make_agent(server)
    command = "echo started; exec sleep 71.5"
    async with open_terminal(server, agent, command=command, token=agent["gatewayToken"]) as terminal:
        await terminal.find(b"started")
        path = f"/v0/agents/{agent['agentId']}/gateway-token/rotate"
        rotated = asyncio.get_running_loop().time()
        assert (await server.client(server.key()).post(path)).status_code == 200
        assert (await terminal.close_code())[0] == 1008
        assert asyncio.get_running_loop().time() - rotated < 1
    assert (await status(server, agent, session=terminal.session, token=agent["gatewayToken"]))[0] == 401
    warden = server.roost.agents.registry.runtimes.get_warden(agent["agentId"])

    async def is_gone() -> bool:
        return (await warden.exec(["pgrep", "-f", "sleep 71[.]5"])).exit_code == 1

    await until(is_gone)
    await server.client(server.key()).delete(f"/v0/agents/{agent['agentId']}")


async def test_at_the_address_of_the_agent(server: RunningServer, agent: Agent) -> None:
    host = f"{agent['agentId']}.agents.localhost:{server.port}"

    def at_address(token: str, **headers: str) -> connect:
        url = f"ws://{host}/v0/console/stream?command=exit+4"
        headers |= {"Cookie": f"gw_token={token}"}
        return connect(url, host="127.0.0.1", proxy=None, additional_headers=headers)

    async with at_address(agent["gatewayToken"], Origin=f"http://{host}") as socket:
        assert await Terminal(socket).exit_code() == 4
    for origin in ("http://elsewhere.example", f"http://other.agents.localhost:{server.port}"):
        with pytest.raises(InvalidStatus) as refused:
            await at_address(agent["gatewayToken"], Origin=origin)
        assert refused.value.response.status_code == 403


async def test_a_revoked_key_ends_the_terminal(server: RunningServer, agent: Agent) -> None:
    key = server.key()
    caller = await server.roost.core.identity.api_keys.verify(key)
    async with open_terminal(server, agent, command="echo started; sleep 60", token=key) as terminal:
        await terminal.find(b"started")
        server.roost.core.db.run(lambda connection: ApiKeys.delete(connection, caller.key_id or ""))
        assert (await terminal.close_code())[0] == 1008


async def test_the_end_of_the_agent_ends_its_terminals(server: RunningServer) -> None:
    agent = await make_agent(server)
    async with open_terminal(server, agent, command="echo started; sleep 60") as terminal:
        await terminal.find(b"started")
        await server.client(server.key()).delete(f"/v0/agents/{agent['agentId']}")
        assert await terminal.close_code() == (1013, "Agent is not running")
    assert (await status(server, agent, session=terminal.session))[0] == 404


async def test_a_container_from_before_the_update(
    server: RunningServer, agent: Agent, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b'{"ok": false, "error": "badRequest", "message": "KeyError(\'open_terminal\')"}\n')
        writer.close()

    path = tmp_path / "w.sock"
    async with await asyncio.start_unix_server(answer, path):
        warden = WardenClient(partial(asyncio.open_unix_connection, path))
        monkeypatch.setattr(server.roost.agents.registry.runtimes, "get_warden", lambda _agent_id: warden)
        code, message = await status(server, agent)
    assert (code, message.startswith("The agent's container is older than the server")) == (409, True)
