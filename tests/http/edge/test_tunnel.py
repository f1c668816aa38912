"""WebSockets and other switched connections through the edge."""

import asyncio
import hashlib
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from websockets.asyncio.server import ServerConnection
from websockets.asyncio.server import serve as serve_websocket
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from tests.http.edge.support import AGENT, TOKEN, EdgeServer, Wire, eventually, read_request, request, scripted

HANDSHAKE = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n"
SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"


@pytest.fixture
def seen() -> list[dict[str, str]]:
    return []


@pytest.fixture
def echoing(edge: EdgeServer, seen: list[dict[str, str]]) -> Iterator[EdgeServer]:
    """A gateway that echoes WebSocket messages."""

    async def handler(connection: ServerConnection) -> None:
        assert connection.request is not None
        seen.append({"path": connection.request.path, **dict(connection.request.headers.raw_items())})
        async for message in connection:
            await connection.send(message)

    async def start() -> object:
        return await serve_websocket(handler, "127.0.0.1", 0, max_size=None)

    server = edge.on_loop(start())
    edge.upstreams[AGENT] = server.sockets[0].getsockname()
    yield edge

    async def stop() -> None:
        server.close()
        await server.wait_closed()

    edge.on_loop(stop())


def dial(edge: EdgeServer, path: str = "/ws", **headers: str) -> ClientConnection:
    named = headers or {"Authorization": f"Bearer {TOKEN}"}
    return connect(
        f"ws://{edge.host}{path}",
        sock=edge.connect(),
        additional_headers=named,
        proxy=None,
        max_size=None,
        compression=None,
    )


def test_messages_of_all_sizes_come_back(echoing: EdgeServer, seen: list[dict[str, str]]) -> None:
    with dial(echoing, "/ws?token=SECRET&a=1") as websocket:
        for size in (0, 1, 125, 126, 65_535, 65_536, 3_000_000):
            websocket.send(b"x" * size)
            assert len(websocket.recv()) == size
        websocket.send("ünïcode")
        assert websocket.recv() == "ünïcode"
    assert seen[0]["path"] == "/ws?a=1"
    assert seen[0]["x-forwarded-for"] == "192.0.0.8"
    assert TOKEN not in str(seen)


def test_a_closed_websocket_is_told_of_once(echoing: EdgeServer) -> None:
    with dial(echoing) as websocket:
        websocket.send("hello")
        websocket.recv()
    (record,) = eventually(lambda: echoing.records)
    assert (record.status, record.path) == (101, "/ws")
    assert record.received > 5
    assert record.sent > 5


def test_messages_are_uses_and_pings_are_none(echoing: EdgeServer) -> None:
    with dial(echoing) as websocket:
        assert echoing.uses == [AGENT]
        assert websocket.ping().wait(20)
        assert echoing.uses == [AGENT]
        websocket.send("hello")
        websocket.recv()
        assert echoing.uses == [AGENT, AGENT]


def test_many_at_once(echoing: EdgeServer) -> None:
    with ExitStack() as stack:
        all_of_them = [stack.enter_context(dial(echoing)) for _ in range(40)]
        for number, websocket in enumerate(all_of_them):
            websocket.send(str(number))
        assert [websocket.recv() for websocket in all_of_them] == [str(number) for number in range(40)]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": "Bearer wrong"}, 401),
        ({"X": "no token"}, 401),
        ({"Cookie": "gw_token=wrong"}, 401),
    ],
)
def test_a_refusal_comes_before_the_switch(echoing: EdgeServer, headers: dict[str, str], status: int) -> None:
    with pytest.raises(InvalidStatus) as refused, dial(echoing, **headers):
        pass
    assert refused.value.response.status_code == status
    assert echoing.uses == []


def test_the_platforms_websockets_go_to_the_application(echoing: EdgeServer) -> None:
    with dial(echoing, "/v0/logs") as websocket:
        assert websocket.recv() == "app /v0/logs"


def test_a_gateway_that_declines_is_heard(edge: EdgeServer, wire: Wire) -> None:
    edge.serve(scripted(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno"))
    wire.send(request("/ws", host=edge.host, headers=HANDSHAKE))
    reply = wire.reply()
    assert (reply.status, reply.body, reply["connection"]) == (403, b"no", "close")
    assert wire.closed()


def test_bytes_around_the_switch_are_not_lost(edge: EdgeServer, wire: Wire) -> None:
    async def gateway(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(SWITCH + b"first")
        writer.write(b" you said " + await reader.readexactly(5))
        await reader.read()

    edge.serve(gateway)
    wire.send(request("/ws", host=edge.host, headers=HANDSHAKE) + b"early")
    assert wire.reply().status == 101
    assert wire._exactly(20) == b"first you said early"


def test_all_that_a_client_sent_arrives_before_its_end(edge: EdgeServer, wire: Wire) -> None:
    digests: list[str] = []

    async def gateway(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(SWITCH)
        digests.append(hashlib.sha256(await reader.read()).hexdigest())

    edge.serve(gateway)
    wire.send(request("/ws", host=edge.host, headers=HANDSHAKE))
    assert wire.reply().status == 101
    data = b"x" * 1_000_000
    wire.send(data)
    wire.sock.shutdown(socket.SHUT_WR)
    assert wire.closed()
    eventually(lambda: digests)
    assert digests == [hashlib.sha256(data).hexdigest()]


def test_all_that_a_gateway_sent_arrives_before_its_end(edge: EdgeServer, wire: Wire) -> None:
    async def gateway(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(SWITCH + b"x" * 1_000_000)

    edge.serve(gateway)
    wire.send(request("/ws", host=edge.host, headers=HANDSHAKE))
    assert wire.reply().status == 101
    assert wire.rest() == b"x" * 1_000_000


def test_a_side_that_does_not_read_is_not_written_to_for_ever(edge: EdgeServer, wire: Wire) -> None:
    """Both ways: what one does not take, the other cannot send."""
    stop = threading.Event()

    async def gateway(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(SWITCH)
        await asyncio.to_thread(stop.wait, 30)

    edge.serve(gateway)
    wire.send(request("/ws", host=edge.host, headers=HANDSHAKE))
    assert wire.reply().status == 101
    wire.sock.settimeout(0.5)
    assert wire.push(b"x" * 65_536, most=200 * 1024**2) < 32 * 1024**2
    stop.set()


def test_an_idle_tunnel_ends_in_time(quick: EdgeServer, quick_wire: Wire) -> None:
    quick.serve(scripted(SWITCH))
    quick_wire.send(request("/ws", host=quick.host, headers=HANDSHAKE))
    assert quick_wire.reply().status == 101
    assert quick_wire.closed()


def test_rotation_closes_a_live_websocket_within_a_second(echoing: EdgeServer) -> None:
    old = echoing.tokens[AGENT]
    with dial(echoing) as websocket:
        websocket.send("hello")
        assert websocket.recv() == "hello"
        new = echoing.rotate()
        with pytest.raises(ConnectionClosed):
            websocket.recv(timeout=1)
    with pytest.raises(InvalidStatus), dial(echoing, Authorization=f"Bearer {old}"):
        pass
    with dial(echoing, Authorization=f"Bearer {new}") as again:
        again.send("new")
        assert again.recv() == "new"
