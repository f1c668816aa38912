"""Connections to gateways: kept, bounded, replaced."""

import asyncio
import threading

import pytest

from tests.http.edge.support import EdgeServer, Handler, Wire, echo, eventually, read_request, request, scripted

HELLO = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


def get(edge: EdgeServer, wire: Wire, method: str = "GET", headers: str = "") -> int:
    wire.send(request(method=method, host=edge.host, headers=headers))
    return wire.reply().status


def test_a_connection_is_used_again(edge: EdgeServer, wire: Wire) -> None:
    edge.serve(echo)
    assert [get(edge, wire) for _ in range(5)] == [200] * 5
    assert edge.dials == 1


def test_an_unused_connection_is_closed_in_time(quick: EdgeServer, quick_wire: Wire) -> None:
    ended = threading.Event()

    async def gateway(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(HELLO)
        await reader.read()
        ended.set()

    quick.serve(gateway)
    assert get(quick, quick_wire) == 200
    assert ended.wait(10)
    assert get(quick, quick_wire) == 200
    assert quick.dials == 2


def test_a_connection_that_the_gateway_closed_is_not_used_again(edge: EdgeServer, wire: Wire) -> None:
    edge.serve(scripted(HELLO, close=True))
    assert get(edge, wire) == 200
    assert get(edge, wire) == 200


def close_at_second_request(requests: list[str]) -> Handler:
    """A gateway that closes a kept connection in the moment that it is used again."""

    async def gateway(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append((await read_request(reader))[0])
        writer.write(HELLO)
        requests.append((await read_request(reader))[0])

    return gateway


def test_a_request_that_may_be_repeated_is_sent_again_on_a_new_connection(edge: EdgeServer, wire: Wire) -> None:
    requests: list[str] = []
    edge.serve(close_at_second_request(requests))
    assert get(edge, wire) == 200
    assert get(edge, wire) == 200
    assert len(requests) == 3
    assert edge.dials == 2


def test_one_that_may_not_is_not(edge: EdgeServer, wire: Wire) -> None:
    requests: list[str] = []
    edge.serve(close_at_second_request(requests))
    assert get(edge, wire) == 200
    assert get(edge, wire, "POST", "Content-Length: 0\r\n") == 502
    assert len(requests) == 2


def test_it_is_sent_again_once_only(edge: EdgeServer, wire: Wire) -> None:
    served = 0

    async def gateway(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal served
        await read_request(reader)
        served += 1
        if served == 1:
            writer.write(HELLO)
            await read_request(reader)

    edge.serve(gateway)
    assert get(edge, wire) == 200
    assert get(edge, wire) == 502
    assert edge.dials == 2


def test_one_agent_has_so_many_connections_and_no_more(quick: EdgeServer) -> None:
    """The bound is four; the fifth request is told to come again, another agent is not concerned."""
    quick.serve(scripted(b""))
    quick.serve(echo, "agent-two")
    quick.tokens["agent-two"] = quick.tokens["agent-one"]
    wires = [Wire(quick.connect()) for _ in range(5)]
    for wire in wires[:4]:
        wire.send(request(host=quick.host))
    eventually(lambda: quick.dials == 4)
    wires[4].send(request(host=quick.host))
    reply = wires[4].reply()
    assert (reply.status, reply["retry-after"]) == (503, "1")
    wires[4].send(request(host=quick.host.replace("agent-one", "agent-two")))
    assert wires[4].reply().status == 200
    for wire in wires:
        wire.sock.close()
    with quick.connect() as sock:
        quick.serve(echo)
        eventually(lambda: get(quick, Wire(sock)) == 200)


def test_only_a_few_unused_connections_are_kept(quick: EdgeServer) -> None:
    open_now = 0

    async def gateway(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal open_now
        open_now += 1
        try:
            await read_request(reader)
            await asyncio.sleep(0.05)  # so that all are asked at the same time
            writer.write(HELLO)
            await reader.read()
        finally:
            open_now -= 1

    quick.serve(gateway)
    wires = [Wire(quick.connect()) for _ in range(4)]
    for wire in wires:
        wire.send(request(host=quick.host))
    assert [wire.reply().status for wire in wires] == [200] * 4
    eventually(lambda: open_now == 2)
    for wire in wires:
        wire.sock.close()


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_gateway_that_speaks_before_it_is_asked_is_not_believed(edge: EdgeServer, wire: Wire, method: str) -> None:
    async def gateway(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HELLO)
        await reader.read()

    async def dial(agent_id: str) -> object:
        reader, writer = await asyncio.open_connection(*edge.upstreams[agent_id])
        while not reader._buffer:  # pyright: ignore[reportAttributeAccessIssue] - not public
            await asyncio.sleep(0.001)
        return reader, writer

    edge.serve(gateway)
    edge.dial = dial
    wire.send(request(method=method, host=edge.host))
    assert wire.error(503) == "The agent does not answer"


def test_a_stream_that_has_ended_already_is_no_connection(edge: EdgeServer, wire: Wire) -> None:
    async def gateway(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        return

    async def dial(agent_id: str) -> object:
        reader, writer = await asyncio.open_connection(*edge.upstreams[agent_id])
        while not reader.at_eof():
            await asyncio.sleep(0.001)
        return reader, writer

    edge.serve(gateway)
    edge.dial = dial
    wire.send(request(host=edge.host))
    assert wire.error(503)
