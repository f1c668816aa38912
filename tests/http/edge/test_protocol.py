"""The whole edge in a whole server: large streams in little memory, real authentication, other clients, other loops."""

import asyncio
import hashlib
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from roost.core.db import Database
from roost.core.machine.memory import read_resident_bytes
from roost.core.seal import Sealer
from roost.core.sensitive import Sensitive
from roost.http.edge.dependencies import ProxyDependencies, ProxyLimits
from roost.http.stack.middleware import add_middleware
from roost.identity import tenants
from roost.identity.api_keys import ApiKeys
from roost.identity.auth_request import AuthRequest
from roost.identity.authenticator import Authenticator
from roost.identity.caller import Caller, CallerKind
from roost.identity.gateway_tokens import GatewayTokens
from roost.identity.platform_tokens import PlatformTokens
from roost.identity.sessions.service import BrowserSessions
from roost.identity.throttle import FailedLoginThrottle
from roost.web.url_rule import UrlFamily
from tests.http.edge.support import (
    AGENT,
    TOKEN,
    EdgeServer,
    Wire,
    echo,
    eventually,
    hello_app,
    read_request,
    request,
    running_edge,
)

MUCH = 200 * 1024**2
PIECE = bytes(range(256)) * 256
HANDSHAKE = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n"


def growth_during(action: Callable[[], None]) -> int:
    """How much memory grew at most while `action` ran."""
    before, highest, done = read_resident_bytes("self"), 0, threading.Event()

    def watch() -> None:
        nonlocal highest
        while not done.wait(0.01):
            highest = max(highest, read_resident_bytes("self"))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        action()
    finally:
        done.set()
        watcher.join()
    return highest - before


# Large streams


@pytest.mark.parametrize("framing", [f"Content-Length: {MUCH}", "Transfer-Encoding: chunked"])
def test_a_large_answer_takes_little_memory(edge: EdgeServer, wire: Wire, framing: str) -> None:
    async def gateway(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(f"HTTP/1.1 200 OK\r\n{framing}\r\n\r\n".encode())
        chunked = framing.startswith("Transfer")
        for _ in range(MUCH // len(PIECE)):
            writer.write(b"%x\r\n%b\r\n" % (len(PIECE), PIECE) if chunked else PIECE)
            await writer.drain()
        writer.write(b"0\r\n\r\n" if chunked else b"")
        await reader.read()

    def fetch() -> None:
        wire.send(request(host=edge.host))
        wire._until(b"\r\n\r\n")
        received = len(wire.buffer)
        while received < MUCH:
            received += len(wire.sock.recv(1 << 18))

    edge.serve(gateway)
    assert growth_during(fetch) < 40 * 1024**2


@pytest.mark.parametrize("chunked", [True, False])
def test_a_large_upload_takes_little_memory_and_arrives_whole(edge: EdgeServer, wire: Wire, chunked: bool) -> None:
    digest = hashlib.sha256()

    async def gateway(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        left = -1 if b"chunked" in head else MUCH
        while left:
            if b"chunked" in head:
                size = left = int(await reader.readuntil(b"\r\n"), 16)
                digest.update((await reader.readexactly(size + 2))[:-2])
            else:
                data = await reader.read(1 << 18)
                digest.update(data)
                left -= len(data)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        await reader.read()

    def send() -> None:
        framing = "Transfer-Encoding: chunked\r\n" if chunked else f"Content-Length: {MUCH}\r\n"
        wire.send(request(method="PUT", host=edge.host, headers=framing))
        piece = b"%x\r\n%b\r\n" % (len(PIECE), PIECE) if chunked else PIECE
        for _ in range(MUCH // len(PIECE)):
            wire.send(piece)
        wire.send(b"0\r\n\r\n" if chunked else b"")
        assert wire.reply().body == b"ok"

    edge.serve(gateway)
    wire.sock.settimeout(60)
    assert growth_during(send) < 40 * 1024**2
    expected = hashlib.sha256()
    for _ in range(MUCH // len(PIECE)):
        expected.update(PIECE)
    assert digest.digest() == expected.digest()


def test_a_slow_reader_gets_all_of_it(edge: EdgeServer, wire: Wire) -> None:
    size = 8 * 1024**2

    async def gateway(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % size)
        writer.write(PIECE * (size // len(PIECE)))
        await writer.drain()

    edge.serve(gateway)
    wire.sock.settimeout(20)
    wire.send(request(host=edge.host, headers="Connection: close\r\n"))
    wire._until(b"\r\n\r\n")
    received = len(wire.buffer)
    while data := wire.sock.recv(65_536):
        received += len(data)
        time.sleep(0.002)
    assert received == size


def test_a_gateway_that_does_not_read_holds_the_upload_back(edge: EdgeServer, wire: Wire) -> None:
    stop = threading.Event()

    async def gateway(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.to_thread(stop.wait, 30)

    edge.serve(gateway)
    wire.sock.settimeout(0.5)
    wire.send(request(method="PUT", host=edge.host, headers=f"Content-Length: {MUCH}\r\n"))
    assert wire.push(PIECE, most=MUCH) < 32 * 1024**2
    stop.set()


# Other clients, other loops


def test_curl_uploads_and_downloads(edge: EdgeServer, tmp_path: Path) -> None:
    edge.serve(echo)
    body = tmp_path / "body"
    body.write_bytes(b"x" * 300_000)
    command = ["curl", "-sS", "--noproxy", "*", "--resolve", f"{AGENT}.agents.localhost:{edge.port}:127.0.0.1"]
    command += ["-H", f"Authorization: Bearer {TOKEN}", "-H", "Expect: 100-continue", "-T", str(body)]
    told = subprocess.run([*command, f"http://{edge.host}/up"], capture_output=True, check=True, timeout=30).stdout
    assert b"PUT /up HTTP/1.1" in told
    assert told.count(b"x") > 300_000


def test_the_standard_loop_serves_as_well() -> None:
    with running_edge(loop_factory=asyncio.new_event_loop) as edge:
        edge.serve(echo)
        with edge.connect() as sock:
            wire = Wire(sock)
            wire.send(request("/a", method="POST", host=edge.host, headers="Content-Length: 2\r\n") + b"hi")
            assert wire.json()["body"] == "hi"
            wire.send(request("/v0/x", host="localhost") + request("/b", host=edge.host))
            assert wire.reply().body == b"app GET /v0/x 0"
            assert "GET /b" in wire.json()["line"]
            wire.send(request(host=edge.host, token="wrong"))
            assert wire.error(401)


def test_a_trusted_proxy_is_believed_about_the_client() -> None:
    with running_edge(trusted=[ip_network("127.0.0.0/8")]) as edge:
        edge.serve(echo)
        with edge.connect() as sock:
            wire = Wire(sock)
            wire.send(request(host=edge.host, headers="X-Forwarded-For: 6.6.6.6, 203.0.113.9\r\n"))
            assert dict(wire.json()["headers"])["x-forwarded-for"] == "203.0.113.9"


# Real authentication


@pytest.fixture
def auth_edge(database: Database) -> Iterator[tuple[EdgeServer, GatewayTokens, str]]:
    """A server that authenticates against a real database."""
    sealer = Sealer(Sensitive(bytes(32)))
    gateways = GatewayTokens(database, sealer)
    tenant = database.run(lambda connection: tenants.ensure_tenant(connection, "acme").id)
    token = database.run(lambda connection: gateways.mint(connection, AGENT, tenant)).reveal()
    keys, throttle = ApiKeys(database, sealer), FailedLoginThrottle()
    sessions = BrowserSessions(database, keys, throttle, "http://localhost")
    authenticator = Authenticator(keys, gateways, PlatformTokens(database, sealer, gateways), sessions, throttle)

    class Guarded(EdgeServer):
        def gate(self, limits: ProxyLimits, **more: Any) -> ProxyDependencies:
            return replace(
                super().gate(limits, **more),
                recall=authenticator.recall_gateway_token,
                admit=authenticator.authenticate_gateway_token,
                subscribe=gateways.subscribe,
            )

    with running_edge(make=Guarded) as edge:
        yield edge, gateways, token


def test_a_rotated_token_is_refused(auth_edge: tuple[EdgeServer, GatewayTokens, str]) -> None:
    edge, gateways, token = auth_edge
    with edge.connect() as sock:
        wire = Wire(sock)
        edge.serve(echo, tell=False)
        wire.send(request(host=edge.host, token=token))
        assert wire.reply().status == 200
        new = edge.on_loop(gateways.rotate(AGENT)).reveal()
        wire.send(request(host=edge.host, token=token))
        assert wire.error(401) == "Unauthorized"
        wire.send(request(host=edge.host, token=new))
        assert wire.reply().status == 200


def test_the_rotation_closes_a_live_tunnel(auth_edge: tuple[EdgeServer, GatewayTokens, str]) -> None:
    edge, gateways, token = auth_edge

    async def gateway(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 101 SP\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        await reader.read()

    edge.serve(gateway, tell=False)
    with edge.connect() as sock:
        wire = Wire(sock)
        wire.send(request(host=edge.host, token=token, headers=HANDSHAKE))
        assert wire.reply().status == 101
        edge.on_loop(gateways.rotate(AGENT))
        began = time.monotonic()
        assert wire.closed()
        assert time.monotonic() - began < 1


@pytest.mark.parametrize(
    ("line", "headers", "status"),
    [
        ("POST /x", "Origin: http://evil.example\r\nContent-Length: 0\r\n", 403),
        ("POST /x", "Origin: null\r\nContent-Length: 0\r\n", 403),
        ("POST /x", "Origin: {own}\r\nContent-Length: 0\r\n", 200),
        ("GET /x", "Origin: http://evil.example\r\n", 200),
        ("GET /ws", f"Origin: http://evil.example\r\n{HANDSHAKE}", 403),
        ("GET /ws", HANDSHAKE, 403),
    ],
)
def test_a_cookie_counts_on_the_agents_own_pages_only(
    auth_edge: tuple[EdgeServer, GatewayTokens, str], line: str, headers: str, status: int
) -> None:
    edge, _, token = auth_edge
    edge.serve(echo, tell=False)
    with edge.connect() as sock:
        wire = Wire(sock)
        named = headers.format(own=f"http://{edge.host}")
        wire.send(f"{line} HTTP/1.1\r\nHost: {edge.host}\r\nCookie: gw_token={token}\r\n{named}\r\n".encode())
        assert wire.reply().status == status


# What stands before the application


async def admitted(entry: AuthRequest, _family: UrlFamily) -> Caller:
    """Everybody is."""
    return Caller(CallerKind.SERVICE, entry.peer)


@pytest.fixture(scope="module")
def edge_with_middleware() -> Iterator[EdgeServer]:
    """A server with everything that stands before the application, and a port that it learns late."""
    edges: list[EdgeServer] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await hello_app(scope, receive, send)
            return
        edge = edges[0]
        assert edge.protocol is not None
        addresses = edge.protocol.pool.dependencies.addresses
        await add_middleware(hello_app, addresses, admitted, observe=edge.records.append)(scope, receive, send)

    with running_edge(app=app) as edge:
        edges.append(edge)
        yield edge


def test_every_response_of_the_platform_carries_the_envelope(edge_with_middleware: EdgeServer) -> None:
    edge_with_middleware.serve(echo)
    with edge_with_middleware.connect() as sock:
        wire = Wire(sock)
        wire.send(request("/v0/logs", host=edge_with_middleware.host, headers="X-Request-Id: rq-1\r\n"))
        reply = wire.reply()
        assert reply.body == f"app GET /v0/agents/{AGENT}/logs 0".encode()
        assert reply["x-request-id"] == "rq-1"
        assert reply["x-content-type-options"] == "nosniff"
        assert "includeSubDomains" in str(reply["strict-transport-security"])
        wire.send(request("/", host="evil.example"))
        assert wire.error(404) == "Not found"
        wire.send(request("/v0/agents/%2e%2e/secrets", host="localhost"))
        assert wire.error(404)
    assert eventually(lambda: len(edge_with_middleware.records) >= 3)


def test_a_body_over_the_limit_is_refused_and_the_connection_lives(edge_with_middleware: EdgeServer) -> None:
    size = 2 * 1024**2
    chunk = b"%x\r\n%b\r\n" % (65_536, b"x" * 65_536)
    for headers, body in (
        (f"Content-Length: {size}\r\n", b"x" * size),
        ("Transfer-Encoding: chunked\r\n", chunk * 32 + b"0\r\n\r\n"),
    ):
        with edge_with_middleware.connect() as sock:
            wire = Wire(sock)
            wire.send(request("/v0/agents", method="POST", host="localhost", headers=headers))
            sender = threading.Thread(target=wire.send, args=(body,))
            sender.start()
            assert wire.error(413) == "Request body too large"
            sender.join(20)
            wire.send(request("/v0/x", host="localhost"))
            assert wire.reply().status == 200


def test_limits_differ_by_path(edge_with_middleware: EdgeServer) -> None:
    with edge_with_middleware.connect() as sock:
        wire = Wire(sock)
        for path, size, status in (
            ("/v0/llm/v1/chat/completions", 32 * 1024**2 + 1, 413),
            (f"/v0/agents/{AGENT}/files/upload", 16 * 1024**2 + 1, 413),
        ):
            wire.send(request(path, method="POST", host="localhost", headers=f"Content-Length: {size}\r\n"))
            assert wire.error(status)
            wire.sock.close()
            wire.sock = edge_with_middleware.connect()
        wire.send(
            request(
                "/v0/files/upload", method="POST", host=edge_with_middleware.host, headers="Content-Length: 2000000\r\n"
            )
            + b"x" * 2_000_000
        )
        assert wire.reply().status == 200
        wire.sock.close()
