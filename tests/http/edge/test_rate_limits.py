"""Limits of requests and bytes at the address of an agent, and of storage gateways that are answered from memory."""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any

from roost.agents.network.routes.model import PathRoute
from roost.http.stack.rate_limits import RateLimits
from roost.http.storage_gateway.response_cache import CachedResponse
from tests.http.edge.support import (
    AGENT,
    TOKEN,
    EdgeServer,
    Reply,
    Wire,
    echo,
    read_request,
    request,
    running_edge,
    scripted,
)

HANDSHAKE = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n"
SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
OTHER = "agent-two"


@contextlib.contextmanager
def limited_edge(*, limits_loopback: bool = True, **limits: Any) -> Iterator[tuple[EdgeServer, Wire]]:
    """Run a server with these limits; its agent echoes, at an open route too."""
    with running_edge(rate_limits=RateLimits(limits_loopback=limits_loopback, **limits)) as edge:
        for name in (AGENT, f"{AGENT}:3000", OTHER):
            edge.serve(echo, name)
        edge.set_routes(PathRoute("/open", 3000, is_protected=False))
        with edge.connect() as sock:
            yield edge, Wire(sock)


def ask(edge: EdgeServer, wire: Wire, target: str = "/", headers: str = "", *, token: str = TOKEN) -> Reply:
    wire.send(request(target, host=edge.host, headers=headers, token=token))
    return wire.reply()


def test_a_credential_has_its_requests_and_is_told_them() -> None:
    with limited_edge(caller_requests=2) as (edge, wire):
        replies = [ask(edge, wire) for _ in range(3)]
        assert [reply.status for reply in replies] == [200, 200, 429]
        assert [reply["ratelimit-remaining"] for reply in replies] == ["1", "0", "0"]
        assert [reply["ratelimit-limit"] for reply in replies] == ["2"] * 3
        assert replies[0]["ratelimit-policy"] == '"requests";q=2;w=60'
        assert replies[2].body == b'{"error":"Too many requests: the limit is 2 in 60 seconds"}'
        assert 25 <= int(replies[2]["retry-after"] or 0) <= 30
        assert ask(edge, wire, "/open").status == 200  # a visitor counts by address
        assert [record.status for record in edge.records] == [200, 200, 429, 200]


def test_failed_guesses_use_up_nothing() -> None:
    with limited_edge(caller_requests=2, host_requests=2) as (edge, wire):
        assert {ask(edge, wire, token=f"rst_gw_{number}").status for number in range(9)} == {401}
        assert ask(edge, wire).status == 200


def test_a_host_has_a_limit_of_all_its_callers() -> None:
    with limited_edge(host_requests=2) as (edge, wire):
        assert [ask(edge, wire, target).status for target in ("/open", "/", "/")] == [200, 200, 429]
        edge.tokens[OTHER] = TOKEN
        wire.send(request(host=f"{OTHER}.agents.localhost:{edge.port}"))
        assert wire.reply().status == 200


def test_the_body_of_a_refused_request_is_discarded() -> None:
    with limited_edge(caller_requests=1) as (edge, wire):
        assert ask(edge, wire).status == 200
        wire.send(request(method="POST", host=edge.host, headers="Content-Length: 5\r\n") + b"12345")
        assert wire.error(429)
        assert ask(edge, wire).status == 429


def test_clients_on_this_machine_are_not_limited_unless_that_is_set() -> None:
    with limited_edge(caller_requests=1, limits_loopback=False) as (edge, wire):
        replies = [ask(edge, wire) for _ in range(3)]
        assert {(reply.status, reply["ratelimit"]) for reply in replies} == {(200, None)}
        statuses = [ask(edge, wire, headers="X-Forwarded-For: 192.0.2.1\r\n").status for _ in range(2)]
        assert statuses == [200, 429]


def test_bytes_count_both_ways_also_of_a_websocket() -> None:
    async def swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(SWITCH)
        await reader.readexactly(200_000)
        writer.write(b"y" * 200_000)
        await reader.read()

    with limited_edge(caller_bytes=300_000) as (edge, wire):
        edge.serve(swallow)
        wire.send(request("/ws", host=edge.host, headers=HANDSHAKE))
        assert wire.reply().status == 101
        wire.send(b"x" * 200_000)
        assert len(wire.sock.recv(1)) == 1
        with edge.connect() as sock:
            other = Wire(sock)
            other.send(request("/open", host=edge.host))  # the same agent, but by address
            assert other.reply().status == 200
        while len(wire.buffer) < 199_999:
            wire._more()
        with edge.connect() as sock:
            refusal = ask(edge, Wire(sock))
        assert (refusal.status, refusal["ratelimit-policy"]) == (429, '"bytes";q=300000;w=60;qu="content-bytes"')
        wire.send(b"x")  # what is under way is not cut off


def test_a_websocket_is_a_request() -> None:
    with limited_edge(caller_requests=1) as (edge, wire):
        edge.serve(scripted(SWITCH))
        handshake = request("/ws", host=edge.host, headers=HANDSHAKE)
        wire.send(handshake)
        reply = wire.reply()
        assert (reply.status, reply["ratelimit-remaining"]) == (101, "0")
        with edge.connect() as sock:
            other = Wire(sock)
            other.send(handshake)
            assert other.error(429)


def test_a_program_with_limits_of_its_own_tells_those() -> None:
    own = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nRateLimit-Limit: 7\r\n\r\n"
    with limited_edge(caller_requests=9) as (edge, wire):
        edge.serve(scripted(own))
        reply = ask(edge, wire)
        assert (reply.all("ratelimit-limit"), reply["ratelimit-policy"]) == (["7"], None)


def test_a_repeated_request_counts_once() -> None:
    async def forgetful(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the first request of each connection, and close it at the second."""
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        await read_request(reader)

    with limited_edge(caller_requests=9) as (edge, wire):
        edge.serve(forgetful)
        assert [ask(edge, wire)["ratelimit-remaining"] for _ in range(3)] == ["8", "7", "6"]


def test_content_from_memory_counts_too() -> None:
    with limited_edge(host_requests=2) as (edge, wire):
        host = f"mine.gateways.localhost:{edge.port}"
        head = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n"
        for name in (host, host.replace("mine", "other")):
            edge.cache.add((b"/ipfs/x", name, ""), 0, CachedResponse(head, b"small", lambda _headers, _sent: None))
        for remaining in ("1", "0"):
            wire.send(f"GET /ipfs/x HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            reply = wire.reply()
            assert (reply.body, reply["ratelimit-remaining"]) == (b"small", remaining)
        wire.send(f"GET /ipfs/x HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        assert wire.reply().body != b"small"  # the application refuses it in its own form
