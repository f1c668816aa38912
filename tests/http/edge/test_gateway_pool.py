"""Letting go of what is open for an agent, and time."""

import asyncio
import threading
import time
from contextlib import ExitStack, suppress

from roost.http.edge.dependencies import ProxyLimits
from tests.http.edge.support import (
    TOKEN,
    EdgeServer,
    Wire,
    echo,
    eventually,
    read_request,
    request,
    running_edge,
    scripted,
)

OK = b"HTTP/1.1 200 OK\r\n"
STREAM = OK + b"Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n"


def test_rotation_closes_a_live_stream_within_a_second(edge: EdgeServer, wire: Wire) -> None:
    edge.serve(scripted(STREAM))
    wire.send(request(host=edge.host))
    assert wire._until(b"one\r\n")
    edge.rotate()
    began = time.monotonic()
    assert wire.closed()
    assert time.monotonic() - began < 1
    (record,) = edge.records
    assert record.status == 200


def test_rotation_closes_a_request_that_waits_for_its_answer(edge: EdgeServer, wire: Wire) -> None:
    edge.serve(scripted(b""))
    wire.send(request(host=edge.host))
    eventually(lambda: edge.dials)
    edge.rotate()
    assert wire.closed()


def test_rotation_closes_a_request_that_waits_for_a_connection(edge: EdgeServer, wire: Wire) -> None:
    waiting = threading.Event()

    async def hang(_agent_id: str) -> None:
        waiting.set()
        await asyncio.Event().wait()

    edge.dial = hang
    wire.send(request(host=edge.host))
    assert waiting.wait(10)
    edge.rotate()
    assert wire.closed()


def test_after_rotation_only_the_new_token_opens(edge: EdgeServer, wire: Wire) -> None:
    edge.serve(echo)
    wire.send(request(host=edge.host))
    assert wire.reply().status == 200
    new = edge.rotate()
    wire.send(request(host=edge.host))
    assert wire.error(401)
    wire.send(request(host=edge.host, token=new))
    assert wire.reply().status == 200
    assert edge.dials == 2, "the unused connection goes too: it has the old credential of the engine"


def test_rotation_of_one_leaves_the_others_alone(edge: EdgeServer, wire: Wire) -> None:
    edge.serve(scripted(STREAM + b"0\r\n\r\n"), "agent-two")
    edge.tokens["agent-two"] = TOKEN
    wire.send(request(host=edge.host.replace("agent-one", "agent-two")))
    assert wire._until(b"one\r\n")
    edge.rotate()
    assert wire._until(b"0\r\n\r\n")


def test_rotation_under_load_is_either_answered_or_refused(edge: EdgeServer) -> None:
    edge.serve(echo)
    statuses: list[int] = []
    stop = threading.Event()

    def client() -> None:
        while not stop.is_set():
            with edge.connect() as sock:
                wire = Wire(sock)
                try:
                    while not stop.is_set():
                        wire.send(request(host=edge.host))
                        statuses.append(wire.reply().status)
                except (EOFError, OSError):
                    continue

    threads = [threading.Thread(target=client) for _ in range(8)]
    for thread in threads:
        thread.start()
    eventually(lambda: len(statuses) > 100)
    edge.rotate()
    counted = len(statuses)
    eventually(lambda: len(statuses) > counted + 50)
    stop.set()
    for thread in threads:
        thread.join(20)
    assert set(statuses) == {200, 401}
    assert set(statuses[counted + 16 :]) == {401}


def test_the_server_ends_with_streams_and_tunnels_open() -> None:
    switch = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    handshake = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n"
    with running_edge() as edge:
        streaming, tunnel, idle = (Wire(edge.connect()) for _ in range(3))
        edge.serve(scripted(STREAM))
        streaming.send(request(host=edge.host))
        assert streaming._until(b"one\r\n")
        edge.upstreams["agent-two"], edge.tokens["agent-two"] = edge.upstreams["agent-one"], TOKEN
        edge.serve(scripted(switch), "agent-two")
        tunnel.send(request(host=edge.host.replace("agent-one", "agent-two"), headers=handshake))
        assert tunnel.reply().status == 101
        idle.send(request("/v0/x", host="localhost"))
        assert idle.reply().status == 200
    for wire in (tunnel, streaming, idle):
        assert wire.closed()
        wire.sock.close()


def test_nothing_ticks_while_there_is_nothing_to_look_after(quick: EdgeServer, quick_wire: Wire) -> None:
    assert quick.protocol is not None
    live = quick.protocol.pool
    quick.serve(echo)
    quick_wire.send(request(host=quick.host))
    assert quick_wire.reply().status == 200
    assert live._timer is not None
    eventually(lambda: live._timer is None)


async def test_a_gateway_is_read_as_its_client_reads(edge: EdgeServer, wire: Wire) -> None:
    """A slow reader holds the gateway back; nothing piles up in between."""
    written = 0

    async def gateway(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        await read_request(reader)
        writer.write(OK + b"Content-Length: 209715200\r\n\r\n")
        for _ in range(3200):
            writer.write(b"x" * 65_536)
            await writer.drain()
            written += 65_536

    edge.serve(gateway)
    wire.send(request(host=edge.host))
    assert wire.reply  # nothing is read
    last = -1
    while last != written or not written:
        last = written
        await asyncio.sleep(0.3)
    assert written < 32 * 1024**2


def test_the_connections_of_a_busy_agent_are_used_again(edge: EdgeServer) -> None:
    count = ProxyLimits().spares
    arrived = asyncio.Barrier(count)

    async def answer_together(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError):
            while True:
                await read_request(reader)
                await arrived.wait()
                writer.write(OK + b"Content-Length: 2\r\n\r\nok")

    edge.serve(answer_together)
    with ExitStack() as stack:
        wires = [Wire(stack.enter_context(edge.connect())) for _ in range(count)]
        for _ in range(3):
            for wire in wires:
                wire.send(request(host=edge.host))
            assert [wire.reply().body for wire in wires] == [b"ok"] * count
    assert edge.dials == count
