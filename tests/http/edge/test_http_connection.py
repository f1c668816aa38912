"""The strict HTTP/1.1 of the server, seen from outside: for the application's requests and for agents' alike."""

import time

import pytest

from roost.http.edge.protocol import EdgeHttpProtocol
from tests.http.edge.support import AGENT, TOKEN, EdgeServer, Wire, echo, eventually, request, scripted

EVERY_HOST = pytest.mark.parametrize(
    "host", ["localhost", "api.localhost", "shop.gateways.localhost", f"{AGENT}.agents.localhost"]
)


def post(host: str, *headers: str) -> bytes:
    lines = "".join(f"{header}\r\n" for header in headers)
    return f"POST /v1/x HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {TOKEN}\r\n{lines}\r\n".encode()


@EVERY_HOST
@pytest.mark.parametrize(
    "headers",
    [
        ("Content-Length: 3", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: chunked", "Content-Length: 3"),
        ("Content-Length: 3", "Content-Length: 3"),
        ("Content-Length: 3", "Content-Length: 4"),
        ("Content-Length: 3, 3",),
        ("Content-Length: +3",),
        ("Content-Length: 0x3",),
        ("Content-Length: 99999999999999999999999",),
        ("Transfer-Encoding: gzip, chunked",),
        ("Transfer-Encoding: identity",),
        ("Transfer-Encoding: xchunked",),
        ("Transfer-Encoding: chunked", "Transfer-Encoding: identity"),
        ("Transfer-Encoding : chunked",),
        ("Transfer-Encoding:\x0bchunked",),
        ("X: a", " folded"),
        ("X: a\rY: b",),
        ("X: a\nY: b",),
        ("X: a\x00b",),
        ("Host: other",),
        ("B\xe4d: x",),
        (": x",),
        ("no colon",),
    ],
)
def test_ambiguous_requests_are_refused_and_end_the_connection(
    edge: EdgeServer, wire: Wire, host: str, headers: tuple[str, ...]
) -> None:
    asked: list[str] = []

    async def gateway(reader: object, writer: object) -> None:
        asked.append("reached")

    edge.serve(gateway)
    smuggled = request("/v0/smuggled", host="localhost")
    wire.send(post(host, *headers) + b"0\r\n\r\n" + smuggled)
    assert wire.error(400)
    assert wire.closed()
    assert not asked


@EVERY_HOST
@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET http://agents.localhost/ HTTP/1.1\r\nHost: %b\r\n\r\n", 421),
        (b"CONNECT a:1 HTTP/1.1\r\nHost: %b\r\n\r\n", 405),
        (b"GET /a#b HTTP/1.1\r\nHost: %b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\nHost: %b\n\n", 400),
        (b"GET / HTTP/3.0\r\nHost: %b\r\n\r\n", 400),
        (b"GET / HTTP/2.0\r\nHost: %b\r\n\r\n", 505),
        (b"BREW / HTTP/1.1\r\nHost: %b\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00%b", 400),
        (b"PRI * HTTP/2.0\r\n\r\n%bSM\r\n\r\n", 400),
    ],
)
def test_request_lines_that_are_not_served(wire: Wire, host: str, head: bytes, status: int) -> None:
    wire.send(head % host.encode())
    assert wire.error(status)
    assert wire.closed()


@pytest.mark.parametrize("head", [b"TRACE / HTTP/1.1\r\nHost: %b\r\n\r\n", b"CONNECT a:1 HTTP/1.1\r\nHost: %b\r\n\r\n"])
def test_methods_that_reach_no_agent_say_which_do(edge: EdgeServer, wire: Wire, head: bytes) -> None:
    wire.send(head % edge.host.encode())
    reply = wire.reply()
    assert (reply.status, reply["allow"]) == (405, "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT")
    assert wire.closed()


def test_a_request_without_a_host_is_refused(wire: Wire) -> None:
    wire.send(b"GET / HTTP/1.1\r\n\r\n")
    assert wire.error(400) == "Missing Host header"


@EVERY_HOST
def test_a_head_that_is_too_large_in_one_piece(wire: Wire, host: str) -> None:
    wire.send(request("/", host=host, headers=f"X: {'y' * 200_000}\r\n"))
    assert wire.error(431)
    assert wire.closed()


@EVERY_HOST
def test_a_head_that_never_ends(wire: Wire, host: str) -> None:
    wire.send(f"GET / HTTP/1.1\r\nHost: {host}\r\nX: ".encode())
    for _ in range(100):
        wire.send(b"y" * 1000)
    assert wire.error(431)
    assert wire.closed()


def test_too_many_headers(wire: Wire) -> None:
    wire.send(request("/", host="localhost", headers="a: b\r\n" * 300))
    assert wire.error(431)


def test_a_long_target_counts_too(wire: Wire) -> None:
    wire.send(request("/" + "x" * 70_000, host="localhost"))
    assert wire.error(431)


def test_endless_trailers_are_bounded(edge: EdgeServer, wire: Wire) -> None:
    edge.serve(echo)
    wire.send(post(edge.host, "Transfer-Encoding: chunked") + b"1\r\nx\r\n0\r\nX: ")
    for _ in range(600):  # more than one read of the server may hold
        wire.send(b"y" * 1000)
    assert wire.error(431)
    assert wire.closed()


def test_trailers_do_not_become_headers(edge: EdgeServer, wire: Wire) -> None:
    edge.serve(echo)
    wire.send(post(edge.host, "Transfer-Encoding: chunked") + b"1\r\nx\r\n0\r\nX-Late: 1\r\nHost: evil\r\n\r\n")
    told = wire.json()
    assert told["body"] == "x"
    assert "late" not in str(told["headers"])
    wire.send(post("localhost", "Transfer-Encoding: chunked") + b"1\r\nx\r\n0\r\nX-Late: 1\r\n\r\n")
    assert wire.reply().body == b"app POST /v1/x 1"


@EVERY_HOST
def test_a_slow_head_is_408(quick: EdgeServer, quick_wire: Wire, host: str) -> None:
    quick_wire.send(f"GET / HTTP/1.1\r\nHost: {host}\r\n".encode())
    assert quick_wire.error(408)
    assert quick_wire.closed()


def test_a_head_that_drips_is_408_all_the_same(quick_wire: Wire) -> None:
    quick_wire.sock.settimeout(0.05)
    began = time.monotonic()
    quick_wire.send(b"GET / HTTP/1.1\r\nX: ")
    while time.monotonic() - began < 10:
        try:
            quick_wire.send(b"y")
            assert b"408" in quick_wire.sock.recv(100)
            return
        except TimeoutError:
            continue
    pytest.fail("a dripping head was waited for")


def test_a_connection_that_says_nothing_is_closed_without_a_word(quick_wire: Wire) -> None:
    assert quick_wire.closed()


def test_a_connection_that_says_nothing_but_newlines_is_closed(quick_wire: Wire) -> None:
    quick_wire.send(request("/v0/a", host="localhost"))
    assert quick_wire.reply().status == 200
    quick_wire.send(b"\r\n")
    assert quick_wire.closed()


def test_an_unused_connection_is_closed_after_the_keep_alive_time(quick: EdgeServer, quick_wire: Wire) -> None:
    quick.serve(echo)
    quick_wire.send(request(host=quick.host))
    assert quick_wire.reply().status == 200
    assert quick_wire.closed()


def test_a_second_head_has_its_time_too(quick: EdgeServer, quick_wire: Wire) -> None:
    quick_wire.send(request("/v0/a", host="localhost") + b"GET /v0/b HTTP/1.1\r\n")
    assert quick_wire.reply().status == 200
    assert quick_wire.error(408)


def test_pipelined_requests_are_answered_in_order(edge: EdgeServer, wire: Wire) -> None:
    edge.serve(echo)
    targets = [("/a", edge.host), ("/v0/b", "localhost"), ("/c", edge.host), ("/d", edge.host), ("/v0/e", "localhost")]
    wire.send(b"".join(request(target, host=host) for target, host in targets))
    answers = [wire.reply().body.decode() for _ in targets]
    for (target, host), answer in zip(targets, answers, strict=True):
        assert f"GET {target}" in answer
        assert answer.startswith("app ") == (host == "localhost")


def test_pipelined_bodies_stay_with_their_requests(edge: EdgeServer, wire: Wire) -> None:
    edge.serve(echo)
    first = post(edge.host, "Content-Length: 5") + b"first"
    second = post(edge.host, "Transfer-Encoding: chunked") + b"3\r\nsec\r\n3\r\nond\r\n0\r\n\r\n"
    third = post("localhost", "Content-Length: 5") + b"third"
    wire.send(first + second + third + second)
    assert wire.json()["body"] == "first"
    assert wire.json()["body"] == "second"
    assert wire.reply().body == b"app POST /v1/x 5"
    assert wire.json()["body"] == "second"


def test_a_refusal_waits_for_its_turn(edge: EdgeServer, wire: Wire) -> None:
    edge.serve(echo)
    wire.send(request("/a", host=edge.host) + request("/b", host=edge.host) + b"nonsense\r\n\r\n")
    assert "GET /a" in wire.json()["line"]
    assert "GET /b" in wire.json()["line"]
    assert wire.error(400)
    assert wire.closed()


def test_a_pipeline_is_bounded(edge: EdgeServer, wire: Wire) -> None:
    edge.serve(echo)
    wire.send(request("/a", host=edge.host) * 200)
    statuses = [wire.reply().status]
    while statuses[-1] == 200:
        statuses.append(wire.reply().status)
    assert statuses[-1] == 429
    assert 60 < len(statuses) < 80
    assert wire.closed()


def test_a_flood_of_requests_is_not_read_ahead(edge: EdgeServer, wire: Wire) -> None:
    """While nothing is answered, the server takes a few reads of input and no more."""
    edge.serve(scripted())  # it never answers
    wire.send(request(host=edge.host))
    eventually(lambda: edge.dials)
    wire.sock.settimeout(0.5)
    flood = request("/v0/x", host="localhost", headers=f"X: {'y' * 60_000}\r\n") * 10
    assert wire.push(flood, most=100 * 1024**2) < 32 * 1024**2


def test_garbage_in_a_body_ends_the_request(edge: EdgeServer, wire: Wire) -> None:
    edge.serve(echo)
    wire.send(post(edge.host, "Transfer-Encoding: chunked") + b"3\r\nabc\r\nzz\r\n")
    assert wire.error(400)
    assert wire.closed()


def test_garbage_in_a_body_that_the_application_reads(wire: Wire) -> None:
    wire.send(post("localhost", "Transfer-Encoding: chunked") + b"3\r\nabc\r\nzz\r\n")
    assert wire.error(400)
    assert wire.closed()


def test_garbage_in_a_body_that_was_to_be_asked_for(edge: EdgeServer, caplog: pytest.LogCaptureFixture) -> None:
    with edge.connect() as sock:
        wire = Wire(sock)
        wire.send(post("localhost", "Expect: 100-continue", "Transfer-Encoding: chunked") + b"3\r\nabc\r\nzz\r\n")
        assert wire.error(400)
        assert wire.closed()
    with edge.connect() as sock:  # the loop has had its turns when it answers somebody else
        other = Wire(sock)
        other.send(request("/v0/x", host="localhost"))
        assert other.reply().status == 200
    assert caplog.records == []


def test_an_upgrade_that_is_not_offered_is_ignored(edge: EdgeServer, wire: Wire) -> None:
    edge.serve(echo)
    upgrade = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk")
    for host in (edge.host, "localhost"):
        smuggled = b"GET /v0/smuggled HTTP/1.1"
        wire.send(
            post(host, *upgrade, f"Content-Length: {len(smuggled)}") + smuggled + request("/v0/n", host="localhost")
        )
        first = wire.reply()
        assert first.status == 200
        assert b"POST /v1/x" in first.body
        assert wire.reply().body == b"app GET /v0/n 0"
    assert b"h2c" not in first.body


def test_a_websocket_handshake_takes_no_body_and_no_predecessors(edge: EdgeServer) -> None:
    upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n"
    for host in (edge.host, "localhost"):
        for data in (
            request("/v0/w", host=host, headers=f"{upgrade}Content-Length: 3\r\n") + b"abc",
            request("/v0/w", host=host, headers=f"{upgrade}Transfer-Encoding: chunked\r\n") + b"0\r\n\r\n",
        ):
            with edge.connect() as sock:
                wire = Wire(sock)
                wire.send(data)
                assert wire.error(400) == "Malformed WebSocket handshake"
    with edge.connect() as sock:
        wire = Wire(sock)
        wire.send(request("/v0/a", host="localhost") + request("/v0/w", host="localhost", headers=upgrade))
        assert wire.reply().status == 200
        assert wire.error(400)


@pytest.mark.parametrize(
    ("path", "headers"),
    [("/v0/w?x=" + "x" * 8192, ""), ("/v0/w", f"X-Long: {'x' * 8192}\r\n"), ("/v0/w", "X-Many: 1\r\n" * 128)],
    ids=["path", "line", "count"],
)
def test_a_large_websocket_handshake_is_answered(edge: EdgeServer, wire: Wire, path: str, headers: str) -> None:
    upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n"
    wire.send(request(path, host="localhost", headers=upgrade + headers))
    assert wire.error(431) == "Request header fields too large"


def test_a_body_nobody_wants_is_read_off_and_the_connection_lives(edge: EdgeServer, wire: Wire) -> None:
    edge.serve(echo)
    body = b"x" * 1_000_000
    wire.send(request("/x", method="POST", host=edge.host, token="wrong", headers=f"Content-Length: {len(body)}\r\n"))
    assert wire.error(401) == "Unauthorized"
    wire.send(body + request("/next", host=edge.host))
    assert "GET /next" in wire.json()["line"]


def test_a_body_nobody_wants_is_not_read_for_ever(edge: EdgeServer, wire: Wire) -> None:
    wire.send(request("/x", method="POST", host=edge.host, token="wrong", headers="Content-Length: 999999999\r\n"))
    assert wire.error(401)
    with pytest.raises(OSError):  # noqa: PT012 - it may come at any of them
        for _ in range(1000):
            wire.send(b"x" * 100_000)


def test_http_1_0_is_answered_and_closed(edge: EdgeServer) -> None:
    edge.serve(echo)
    for host in (edge.host, "localhost"):
        with edge.connect() as sock:
            wire = Wire(sock)
            wire.send(f"GET /v1/x HTTP/1.0\r\nHost: {host}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())
            assert wire.reply().status == 200
            assert wire.closed()


def test_many_idle_connections_do_not_hinder_others(edge: EdgeServer) -> None:
    edge.serve(echo)
    idle = [edge.connect() for _ in range(300)]
    for sock in idle:
        sock.sendall(b"GET / HT")
    with edge.connect() as sock:
        wire = Wire(sock)
        wire.send(request(host=edge.host))
        assert wire.reply().status == 200
    for sock in idle:
        sock.close()


def test_uvicorns_own_access_log_is_off(edge: EdgeServer) -> None:
    """It would hold the query, and so tokens."""
    assert edge.protocol is not None
    with edge.connect() as sock:
        wire = Wire(sock)
        wire.send(request("/v0/x?token=SECRET", host="localhost"))
        assert wire.reply().status == 200
    assert "SECRET" not in repr(edge.records)


@EVERY_HOST
def test_a_server_that_drains_ends_connections_with_their_next_response(
    edge: EdgeServer, wire: Wire, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    edge.serve(echo)
    monkeypatch.setattr(EdgeHttpProtocol, "is_draining", True)
    wire.send(request("/v0/models", host=host))
    reply = wire.reply()
    assert (reply.status, reply["connection"]) == (200, "close")
    assert wire.closed()
