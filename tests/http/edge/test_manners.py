"""Gateways and clients with bad manners: each answered or cut off in bounded time, none heard by a neighbour."""

import asyncio
import socket
import threading
import time

import pytest

from tests.http.edge.support import EdgeServer, Wire, echo, eventually, read_request, request, scripted

OK = b"HTTP/1.1 200 OK\r\n"
HELLO = OK + b"Content-Length: 5\r\n\r\nhello"


# Gateways with bad manners


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        OK + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        OK + b"X: " + b"y" * 10_000_000 + b"\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
        b"HTTP/1.1 999 Odd\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n",
        b"HTTP/1.1 102 Processing\r\n\r\n" * 50,
    ],
)
def test_an_answer_that_cannot_be_carried_is_502(edge: EdgeServer, wire: Wire, answer: bytes) -> None:
    edge.serve(scripted(answer))
    wire.send(request(host=edge.host))
    statuses = [wire.reply().status]
    while statuses[-1] < 200:
        statuses.append(wire.reply().status)
    assert statuses[-1] == 502
    wire.send(request("/v0/x", host="localhost"))
    assert wire.reply().body == b"app GET /v0/x 0"


@pytest.mark.parametrize("cut", [b"", OK, OK + b"Content-Len"])
def test_a_gateway_that_dies_before_it_answers_is_502(edge: EdgeServer, wire: Wire, cut: bytes) -> None:
    edge.serve(scripted(cut, close=True))
    wire.send(request(method="POST", host=edge.host, headers="Content-Length: 1\r\n") + b"x")
    assert wire.error(502)


@pytest.mark.parametrize(
    "cut", [OK + b"Content-Length: 99\r\n\r\nhello", OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"]
)
def test_a_gateway_that_dies_in_an_answer_ends_the_clients_connection(edge: EdgeServer, wire: Wire, cut: bytes) -> None:
    edge.serve(scripted(cut, close=True))
    wire.send(request(host=edge.host))
    data = wire.rest()
    assert data.startswith(OK)
    assert b"hello" in data
    assert not data.endswith(b"0\r\n\r\n")


def test_an_answer_nobody_asked_for_is_never_told(edge: EdgeServer, wire: Wire) -> None:
    forged = OK + b"Content-Length: 6\r\n\r\nforged"
    edge.serve(scripted(HELLO + forged))
    for _ in range(3):
        wire.send(request(host=edge.host))
        assert wire.reply().body == b"hello"
        wire.send(request("/v0/x", host="localhost"))
        assert wire.reply().body == b"app GET /v0/x 0"
    assert edge.dials == 3


def test_a_gateway_that_never_answers_is_504(quick: EdgeServer, quick_wire: Wire) -> None:
    quick.serve(scripted(b""))
    quick_wire.send(request(host=quick.host))
    assert quick_wire.error(504) == "The agent took too long to answer"
    quick_wire.send(request("/v0/x", host="localhost"))
    assert quick_wire.reply().status == 200


def test_a_head_that_drips_is_504(quick: EdgeServer, quick_wire: Wire) -> None:
    async def gateway(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(OK + b"X: ")
        while not writer.is_closing():
            writer.write(b"y")
            await asyncio.sleep(0.05)

    quick.serve(gateway)
    quick_wire.sock.settimeout(5)
    quick_wire.send(request(host=quick.host))
    assert quick_wire.error(504)


def test_an_answer_that_stops_is_cut_in_the_end(quick: EdgeServer, quick_wire: Wire) -> None:
    quick.serve(scripted(OK + b"Content-Length: 99\r\n\r\nhello"))
    quick_wire.send(request(host=quick.host))
    assert quick_wire.rest().endswith(b"hello")


# Clients with bad manners


def test_an_upload_that_stops_is_408(quick: EdgeServer, quick_wire: Wire) -> None:
    quick.serve(echo)
    quick_wire.send(request(method="POST", host=quick.host, headers="Content-Length: 99\r\n") + b"x")
    assert quick_wire.error(408)


def test_an_upload_that_drips_is_408(quick: EdgeServer, quick_wire: Wire) -> None:
    quick.serve(echo)
    quick_wire.send(request(method="POST", host=quick.host, headers="Content-Length: 9999\r\n"))
    quick_wire.sock.settimeout(0.02)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            quick_wire.send(b"x")
            quick_wire.buffer += quick_wire.sock.recv(1000)
            break
        except TimeoutError:
            continue
    quick_wire.sock.settimeout(5)
    assert quick_wire.error(408)


def test_a_client_that_leaves_ends_the_request_at_the_gateway(edge: EdgeServer) -> None:
    ended = threading.Event()

    async def gateway(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        await reader.read()
        ended.set()

    edge.serve(gateway)
    sock = edge.connect()
    sock.sendall(request(host=edge.host))
    eventually(lambda: edge.dials)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    sock.close()
    assert ended.wait(10)
    eventually(lambda: [record.status for record in edge.records] == [499])


def test_a_client_that_ends_its_side_has_left(edge: EdgeServer, wire: Wire) -> None:
    """As in nginx: a client that closes looks the same, and the agent must not go on working for it."""
    began, ended = threading.Event(), threading.Event()

    async def gateway(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        began.set()
        await reader.read()
        ended.set()

    edge.serve(gateway)
    wire.send(request(host=edge.host))
    assert began.wait(10)
    wire.sock.shutdown(socket.SHUT_WR)
    assert ended.wait(10)
    assert wire.closed()


def test_a_client_that_ends_its_side_in_the_middle_of_a_request_has_gone(edge: EdgeServer, wire: Wire) -> None:
    edge.serve(echo)
    wire.send(request(method="POST", host=edge.host, headers="Content-Length: 9\r\n") + b"x")
    eventually(lambda: edge.dials)
    wire.sock.shutdown(socket.SHUT_WR)
    assert wire.closed()


def test_an_answer_before_the_upload_is_through(edge: EdgeServer, wire: Wire) -> None:
    async def gateway(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
        await reader.read(10)

    edge.serve(gateway)
    wire.send(request("/x", method="POST", host=edge.host, headers="Content-Length: 3000000\r\n") + b"x" * 1000)
    reply = wire.reply()
    assert (reply.status, reply.body) == (413, b"no")
    wire.send(b"x" * 2_999_000 + request("/v0/x", host="localhost"))
    assert wire.reply().body == b"app GET /v0/x 0"


def test_an_answer_that_is_written_while_the_upload_goes_on(edge: EdgeServer, wire: Wire) -> None:
    async def gateway(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK + b"Transfer-Encoding: chunked\r\n\r\n")
        while data := await reader.readexactly(7):
            writer.write(b"7\r\n" + data + b"\r\n")
            if b"end" in data:
                writer.write(b"0\r\n\r\n")
                break
        await reader.read()

    edge.serve(gateway)
    wire.send(request("/x", method="POST", host=edge.host, headers="Content-Length: 14\r\n"))
    wire.send(b"message")
    assert wire._until(b"message\r\n")
    wire.send(b"the end")
    assert wire._until(b"0\r\n\r\n").startswith(b"7\r\nthe end")
    wire.send(request("/v0/x", host="localhost"))
    assert wire.reply().status == 200
