"""Limits of connections, in all and of one peer."""

import asyncio
import contextlib
import socket
from ipaddress import ip_network
from pathlib import Path

import pytest

from roost.core.machine.unix_socket import listen_unix
from roost.http.edge.dependencies import ProxyLimits
from roost.http.edge.protocol import ConnectionCounter, ConnectionLimitReached, PeerConnectionLimitReached
from tests.http.edge.support import EdgeServer, Reply, Wire, echo, eventually, request, running_edge

LIMITS = ProxyLimits(connections=10, peer_connections=2)


@pytest.mark.parametrize(
    ("peers", "refused"),
    [
        (["192.0.2.1"] * 3, True),
        (["192.0.2.1", "192.0.2.1", "192.0.2.2"], False),
        (["2001:db8::1", "2001:db8::2", "2001:db8::ffff"], True),
        (["2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"], False),
        (["127.0.0.1"] * 3, False),
        (["::1"] * 3, False),
        (["10.0.0.7"] * 3, False),
    ],
)
def test_a_peer_has_so_many_unless_it_may_be_a_proxy(peers: list[str], refused: bool) -> None:
    counter = ConnectionCounter(LIMITS, [ip_network("10.0.0.0/8")])
    *_, last = [counter.add(peer, total) for total, peer in enumerate(peers, 1)]
    assert isinstance(last, PeerConnectionLimitReached) == refused
    counter.remove(peers[0])
    counter.remove(peers[-1])
    assert counter.add(peers[-1], 2) is None


def test_all_peers_together_have_so_many() -> None:
    assert isinstance(ConnectionCounter(LIMITS, []).add("127.0.0.1", 11), ConnectionLimitReached)


def test_connections_over_the_limit_are_refused_and_free_their_place() -> None:
    with running_edge(ProxyLimits(connections=2, rejections=1, linger=5.0)) as edge, contextlib.ExitStack() as stack:
        wires = [Wire(stack.enter_context(edge.connect())) for _ in range(2)]
        for wire in wires:
            wire.send(b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert wire.reply().status == 200
        refused = Wire(stack.enter_context(edge.connect()))
        reply = refused.reply()
        assert (reply.status, reply["retry-after"], reply["connection"]) == (503, "1", "close")
        assert b"Too many open connections" in reply.body
        assert Wire(stack.enter_context(edge.connect())).closed()  # the refusals have their own limit
        wires[0].sock.close()
        refused.sock.close()

        def is_served() -> bool:
            with edge.connect() as sock:
                wire = Wire(sock)
                wire.send(b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
                with contextlib.suppress(OSError, EOFError):
                    return wire.reply().status == 200
                return False

        assert eventually(is_served)


async def listen_for_proxy(edge: EdgeServer, path: Path) -> None:
    assert edge.create_protocol is not None
    loop = asyncio.get_running_loop()
    edge.gateways.append(await loop.create_unix_server(edge.create_protocol, sock=listen_unix(path)))


def test_connections_of_our_own_proxy_count_for_their_clients(tmp_path: Path) -> None:
    path = tmp_path / "roost.sock"
    with running_edge(ProxyLimits(peer_connections=2)) as edge, contextlib.ExitStack() as stack:
        edge.on_loop(listen_for_proxy(edge, path))
        edge.serve(echo)

        def ask(client: str, wire: Wire | None = None) -> tuple[Wire, Reply]:
            if wire is None:
                wire = Wire(stack.enter_context(socket.socket(socket.AF_UNIX)))
                wire.sock.connect(str(path))
            wire.send(request(host=edge.host, headers=f"X-Forwarded-For: {client}\r\n"))
            return wire, wire.reply()

        first, reply = ask("192.0.2.1")
        assert (reply.status, b'x-forwarded-for", "192.0.2.1' in reply.body.lower()) == (200, True)
        assert ask("192.0.2.1")[1].status == 200
        wire, refused = ask("192.0.2.1")
        wire.sock.close()
        assert (refused.status, refused["connection"]) == (429, "close")
        assert ask("192.0.2.2")[1].status == 200
        assert ask("192.0.2.2", first)[1].status == 200, "an idle connection serves another client"
        eventually(lambda: ask("192.0.2.1")[1].status == 200)
        assert ask("192.0.2.2")[1].status == 429
