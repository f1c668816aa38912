import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from roost.agents.network.egress.proxy import EgressProxy
from roost.core.machine import unix_socket
from roost.core.machine.unix_socket import Stream, StreamHandler
from roost.drivers.runtime.contract import RelayListener, RuntimeFailed
from roost.http.server.relay import RelayServer
from roost.net.dialer import PublicDialer
from roost.net.policy import EgressPolicy
from tests.agents.network.egress.proxying import ESTABLISHED
from tests.net.loopback import OPEN, FakeResolver, OriginServer, serving, until


@pytest.fixture(params=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": request.param == "uvloop"}


class RelaySockets:
    """The part of a runtime that relays need: a socket at a path per agent and relay."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked: list[tuple[str, str]] = []
        self.broken: set[str] = set()

    async def listen(self, agent_id: str, relay: str, handler: StreamHandler) -> RelayListener:
        self.asked.append((agent_id, relay))
        if relay in self.broken:
            raise RuntimeFailed("the relay cannot be opened")
        return await unix_socket.serve_unix(unix_socket.listen_unix(self.path(agent_id, relay)), handler)

    def path(self, agent_id: str, name: str) -> Path:
        return self.folder / f"{agent_id}.{name}"


class RecordingApp:
    """Answers with what it sees of a request; `/wait` ends when the client leaves."""

    def __init__(self) -> None:
        self.waiting = 0
        self.left = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await (self.wait(receive, send) if scope["path"] == "/wait" else self.tell(scope, receive, send))

    async def tell(self, scope: Any, receive: Any, send: Any) -> None:
        body = b""
        while (message := await receive())["type"] == "http.request":
            body += message["body"]
            if not message["more_body"]:
                break
        seen = {"path": scope["path"], "raw": scope["raw_path"].decode(), "query": scope["query_string"].decode()}
        seen |= {"server": scope["server"], "client": scope["client"]}
        seen |= {"agent": scope["state"]["relay_agent"], "body": len(body), "method": scope["method"]}
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": json.dumps(seen).encode()})

    async def wait(self, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"first", "more_body": True})
        self.waiting += 1
        while (await receive())["type"] != "http.disconnect":
            pass
        self.left += 1


class RelayEnv:
    def __init__(self, folder: Path, policy: EgressPolicy) -> None:
        self.sockets = RelaySockets(folder)
        self.app = RecordingApp()
        runtime: Any = self.sockets
        self.relays = RelayServer(runtime, self.app, EgressProxy(PublicDialer(policy, FakeResolver())))

    @asynccontextmanager
    async def connected(self, agent_id: str, name: str) -> AsyncIterator[Stream]:
        reader, writer = await unix_socket.connect_unix(self.sockets.path(agent_id, name))
        try:
            yield reader, writer
        finally:
            writer.transport.abort()

    async def send(self, agent_id: str, name: str, data: bytes) -> bytes:
        async with self.connected(agent_id, name) as (reader, writer):
            writer.write(data)
            async with asyncio.timeout(10):
                return await reader.read()

    async def get(self, agent_id: str, target: str, fields: Mapping[str, str] | None = None) -> Any:
        lines = "".join(f"{name}: {value}\r\n" for name, value in (fields or {}).items())
        head = f"GET {target} HTTP/1.1\r\nHost: agent\r\nConnection: close\r\n{lines}\r\n"
        status, _, rest = (await self.send(agent_id, "api", head.encode())).partition(b"\r\n")
        assert status == b"HTTP/1.1 200 OK"
        return json.loads(rest.split(b"\r\n")[-4])  # one chunk, and the last one


@asynccontextmanager
async def open_relay_env(folder: Path, *agents: str, policy: EgressPolicy = OPEN) -> AsyncIterator[RelayEnv]:
    env = RelayEnv(folder, policy)
    try:
        for agent_id in agents:
            await env.relays.open(agent_id)
        yield env
    finally:
        await env.relays.close_all()


async def test_requests_are_marked_with_their_agent(tmp_path: Path) -> None:
    async with open_relay_env(tmp_path, "a1") as env:
        seen = await env.get("a1", "/v0/agents/a%20b?limit=1")
    assert (seen["path"], seen["raw"], seen["agent"]) == ("/v0/agents/a b", "/v0/agents/a%20b", "a1")
    assert (seen["server"], seen["client"], seen["query"]) == (None, None, "limit=1")


async def test_the_socket_is_the_identity_whatever_the_client_says(tmp_path: Path) -> None:
    claims = {
        "Authorization": "Bearer a2",
        "X-Relay-Agent": "a2",
        "Relay_Agent": "a2",
        "X-Forwarded-For": "a2",
        "X-Forwarded-Host": "a2.agents.localhost",
        "Forwarded": "for=a2;host=a2.agents.localhost",
        "Cookie": "relay_agent=a2",
    }
    async with open_relay_env(tmp_path, "a1", "a2") as env:
        assert (await env.get("a1", "/x?relay_agent=a2&state[relay_agent]=a2", claims))["agent"] == "a1"
        absolute = b"GET http://a2.agents.localhost/x HTTP/1.1\r\nHost: a2.agents.localhost\r\n\r\n"
        assert (await env.send("a1", "api", absolute)).startswith(b"HTTP/1.1 421 ")
        assert (await env.get("a2", "/x"))["agent"] == "a2"


async def test_state_written_by_the_app_stays_in_its_request(tmp_path: Path) -> None:
    async def careless(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["state"]["relay_agent"])
        scope["state"]["relay_agent"] = "somebody else"
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    seen: list[str] = []
    sockets: Any = RelaySockets(tmp_path)
    relays = RelayServer(sockets, careless, EgressProxy(PublicDialer(EgressPolicy(), FakeResolver())))
    await relays.open("a1")
    try:
        reader, writer = await unix_socket.connect_unix(sockets.path("a1", "api"))
        for _ in range(2):
            writer.write(b"GET / HTTP/1.1\r\nHost: agent\r\n\r\n")
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 204 ")
        writer.transport.abort()
    finally:
        await relays.close_all()
    assert seen == ["a1", "a1"]


async def test_bodies_reach_the_app_and_connections_are_kept(tmp_path: Path) -> None:
    async with open_relay_env(tmp_path, "a1") as env, env.connected("a1", "api") as (reader, writer):
        for size in (0, 10, 500_000):
            writer.write(b"POST /up HTTP/1.1\r\nHost: agent\r\nContent-Length: %d\r\n\r\n" % size + b"x" * size)
            assert b'"body": %d,' % size in await reader.readuntil(b"\r\n0\r\n\r\n")


async def test_the_proxy_socket_leads_to_the_egress_proxy(tmp_path: Path) -> None:
    async with open_relay_env(tmp_path, "a1") as env, serving(OriginServer()) as port:
        answer = await env.send("a1", "proxy", b"GET http://127.0.0.1:%d/ HTTP/1.1\r\n\r\n" % port)
    assert answer.endswith(b"\r\n\r\nhello")


async def test_the_proxy_refuses_what_the_policy_refuses(tmp_path: Path) -> None:
    async with open_relay_env(tmp_path, "a1", policy=EgressPolicy()) as env, serving(OriginServer()) as port:
        answer = await env.send("a1", "proxy", b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n" % port)
    assert answer.startswith(b"HTTP/1.1 403 ")


async def test_close_ends_requests_and_tunnels_of_that_agent_alone(tmp_path: Path) -> None:
    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        dropped.append(1)

    dropped: list[int] = []
    connect = b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n"
    async with (
        open_relay_env(tmp_path, "a1", "a2") as env,
        serving(hold) as port,
        env.connected("a1", "api") as (request, request_out),
        env.connected("a1", "proxy") as (tunnel, tunnel_out),
        env.connected("a2", "proxy") as (other, other_out),
    ):
        request_out.write(b"GET /wait HTTP/1.1\r\nHost: agent\r\n\r\n")
        assert (await request.readuntil(b"first\r\n")).startswith(b"HTTP/1.1 200 OK")
        for reader, writer in ((tunnel, tunnel_out), (other, other_out)):
            writer.write(connect % port)
            assert await reader.readuntil(b"\r\n\r\n") == ESTABLISHED
        await env.relays.close("a1")
        assert await ended(request)
        assert await ended(tunnel)
        await until(lambda: env.app.left == 1 and len(dropped) == 1)
        for name in ("api", "proxy"):
            with pytest.raises(OSError):
                await unix_socket.connect_unix(env.sockets.path("a1", name))
        assert not other.at_eof()
        assert (await env.get("a2", "/x"))["agent"] == "a2"
        await env.relays.close("a1")


async def ended(reader: asyncio.StreamReader) -> bool:
    try:
        async with asyncio.timeout(10):
            return await reader.read() == b""
    except ConnectionResetError:
        return True


async def test_open_is_idempotent_also_when_asked_twice_at_once(tmp_path: Path) -> None:
    async with open_relay_env(tmp_path, "a1") as env:
        await asyncio.gather(*(env.relays.open("a1") for _ in range(3)))
        assert env.sockets.asked == [("a1", "api"), ("a1", "proxy")]
        assert (await env.get("a1", "/x"))["agent"] == "a1"


async def test_a_new_server_takes_over_the_paths_and_an_agent_can_be_opened_again(tmp_path: Path) -> None:
    async with open_relay_env(tmp_path, "a1") as old, open_relay_env(tmp_path, "a1") as new:
        assert (await new.get("a1", "/x"))["agent"] == "a1"
        await old.relays.close_all()
        assert (await new.get("a1", "/x"))["agent"] == "a1"
        await new.relays.close("a1")
        await new.relays.open("a1")
        assert (await new.get("a1", "/x"))["agent"] == "a1"


async def test_half_a_relay_is_none(tmp_path: Path) -> None:
    async with open_relay_env(tmp_path) as env:
        env.sockets.broken.add("proxy")
        with pytest.raises(RuntimeFailed):
            await env.relays.open("a1")
        with pytest.raises(OSError):
            await unix_socket.connect_unix(env.sockets.path("a1", "api"))
        env.sockets.broken.clear()
        await env.relays.open("a1")
        assert (await env.get("a1", "/x"))["agent"] == "a1"


@pytest.mark.parametrize(
    ("start", "more"),
    [
        (b"GET /x HTTP/1.1\r\nX: ", b"x" * 8192),
        (b"GET /", b"x" * 8192),
        (b"GET /x HTTP/1.1\r\n", b"X: y\r\n" * 1024),
        (b"POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"X: y\r\n" * 1024),
        (b"POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: ", b"x" * 8192),
        (b"POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"x" * 8192),
    ],
)
async def test_endless_heads_and_trailers_are_cut_off(tmp_path: Path, start: bytes, more: bytes) -> None:
    async with open_relay_env(tmp_path, "a1") as env, env.connected("a1", "api") as (reader, writer):
        writer.write(start)
        async with asyncio.timeout(20):
            await write_until_refused(more, writer)
        try:
            answer = await reader.read()
        except ConnectionError:
            answer = b""
        assert b"200 OK" not in answer


async def write_until_refused(piece: bytes, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while True:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx", b"400"),
        (b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\nx", b"400"),
        (b"GET /x HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", b"400"),
        (b"GET /x HTTP/1.1\r\n\r\n", b"400"),
        (b"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n", b"405"),
    ],
)
async def test_heads_are_checked_as_on_the_public_port(tmp_path: Path, head: bytes, status: bytes) -> None:
    async with open_relay_env(tmp_path, "a1") as env:
        assert (await env.send("a1", "api", head)).startswith(b"HTTP/1.1 " + status)


async def test_the_connections_of_an_agent_are_limited(tmp_path: Path) -> None:
    async with open_relay_env(tmp_path, "a1", "a2") as env:
        streams = [await unix_socket.connect_unix(env.sockets.path("a1", "api")) for _ in range(257)]
        try:
            assert await ended(streams[256][0])
            assert not any(reader.at_eof() for reader, _ in streams[:256])
            assert (await env.get("a2", "/x"))["agent"] == "a2"
        finally:
            for _, writer in streams:
                writer.transport.abort()
        assert (await eventually(env, "a1"))["agent"] == "a1"


async def eventually(env: RelayEnv, agent_id: str) -> Any:
    async with asyncio.timeout(10):
        while True:
            try:
                return await env.get(agent_id, "/x")
            except (ConnectionError, AssertionError):
                await asyncio.sleep(0.01)


async def test_nonsense_and_upgrades_are_answered_quietly(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    upgrade = b"GET /x HTTP/1.1\r\nHost: agent\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"
    async with open_relay_env(tmp_path, "a1") as env:
        assert (await env.send("a1", "api", b"\x16\x03\x01 nonsense\r\n\r\n")).startswith(b"HTTP/1.1 400 ")
        async with env.connected("a1", "api") as (reader, writer):
            writer.write(upgrade)
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
    assert not caplog.records


async def test_a_drained_connection_ends_when_its_request_has(tmp_path: Path) -> None:
    async with open_relay_env(tmp_path, "a1") as env, env.connected("a1", "api") as (idle, other):
        async with env.connected("a1", "api") as (reader, writer):
            other.write(b"GET /x HTTP/1.1\r\nHost: agent\r\n\r\n")
            await idle.readuntil(b"\r\n\r\n")
            writer.write(b"GET /wait HTTP/1.1\r\nHost: agent\r\n\r\n")
            await reader.readuntil(b"first")
            assert env.relays.drain_connections()
            async with asyncio.timeout(10):
                await idle.read()  # until its end
            assert (env.app.waiting, env.app.left) == (1, 0)
        async with asyncio.timeout(10):
            while env.relays.drain_connections():
                await asyncio.sleep(0.01)
        assert env.app.left == 1
