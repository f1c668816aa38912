"""Requests that are answered from memory: their form, order, slow clients, and the access log."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import cast

import pytest

from roost.http.server.http_connection import HttpConnection
from roost.http.server.request_head import RequestHead, RequestHeaders
from roost.http.server.write_coalescer import DirectWriter
from roost.http.stack.rate_limits import UNCOUNTED
from roost.http.storage_gateway.response_cache import MAX_BODY, CachedExchange, CachedResponse
from roost.web.access_log import AccessRecord
from tests.http.edge.support import EdgeServer, Wire

BODY = b"x" * MAX_BODY


@pytest.fixture
def counted(edge: EdgeServer) -> list[int]:
    """Put a response into the cache, and return the list of sizes that are counted."""
    counts: list[int] = []

    def count(_headers: Mapping[str, str], sent: int) -> None:
        counts.append(sent)

    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n" % len(BODY)
    edge.cache.add((b"/ipfs/x?a=1", host(edge), ""), 0, CachedResponse(head, BODY, count))
    return counts


def host(edge: EdgeServer) -> str:
    return f"mine.gateways.localhost:{edge.port}"


def get(edge: EdgeServer, headers: str = "") -> bytes:
    return f"GET /ipfs/x?a=1 HTTP/1.1\r\nHost: {host(edge)}\r\n{headers}\r\n".encode()


def test_the_form_of_a_response(edge: EdgeServer, wire: Wire, counted: list[int]) -> None:
    wire.send(get(edge, "X-Request-Id: mine\r\n"))
    reply = wire.reply()
    assert (reply.status, reply.body == BODY, reply["x-request-id"]) == (200, True, "mine")
    assert reply["date"]
    (record,) = edge.records
    assert (record.method, record.path, record.status, record.sent) == ("GET", "/ipfs/x", 200, len(BODY))
    assert (record.request_id, counted) == ("mine", [len(BODY)])


def test_others_are_answered_by_the_application(edge: EdgeServer, wire: Wire, counted: list[int]) -> None:
    for headers in ("Range: bytes=0-1\r\n", "Accept: text/html\r\n", "If-None-Match: x\r\n", "Content-Length: 0\r\n"):
        wire.send(get(edge, headers))
        cached = headers.startswith("Content-Length")
        assert (wire.reply().body == BODY) is cached, headers
    wire.send(get(edge, "Connection: close\r\n"))
    assert wire.reply().body != BODY
    assert wire.rest() == b""
    assert len(counted) == 1


def test_pipelined_requests_are_all_answered(edge: EdgeServer, wire: Wire, counted: list[int]) -> None:
    wire.send(get(edge) * 60)
    for _ in range(60):
        assert wire.reply().body == BODY
    assert counted == [len(BODY)] * 60


class PausedClient:
    """A connection whose client has not read earlier responses."""

    def __init__(self) -> None:
        self.flow = SimpleNamespace(write_paused=True)
        self.transport, self.writer = self, DirectWriter()
        self.server_state = SimpleNamespace(default_headers=[(b"date", b"now")])
        self.writes: list[bytes] = []
        self.checks = 0
        self.is_kept: bool | None = None

    def write(self, data: bytes) -> None:
        self.writes.append(data)

    def check_writing(self) -> None:
        self.checks += 1

    def set_deadline(self, _seconds: float | None) -> None: ...

    def complete_response(self, *, keep_alive: bool) -> None:
        self.is_kept = keep_alive


def paused_exchange() -> tuple[PausedClient, CachedExchange, list[AccessRecord]]:
    client, records = PausedClient(), list[AccessRecord]()
    head = RequestHead(b"GET", b"/ipfs/x", RequestHeaders("1.1", [(b"host", b"gate")]), websocket=False)
    response = CachedResponse(b"HTTP/1.1 200 OK\r\n", b"body", lambda _headers, _sent: None)
    exchange = CachedExchange(cast("HttpConnection", client), head, response, records.append, UNCOUNTED)
    exchange.start()
    exchange.pause_response()
    return client, exchange, records


def test_it_waits_for_a_client_that_does_not_read() -> None:
    client, exchange, records = paused_exchange()
    exchange.check_time()
    assert (client.checks, client.writes, records) == (2, [], [])
    exchange.disable_keep_alive()
    exchange.resume_response()
    (written,) = client.writes
    assert written.startswith(b"HTTP/1.1 200 OK\r\ndate: now\r\nx-request-id: ")
    assert written.endswith(b"\r\nconnection: close\r\n\r\nbody")
    assert (client.is_kept, [record.status for record in records]) == (False, [200])


def test_a_client_that_leaves_before_its_turn() -> None:
    client, exchange, records = paused_exchange()
    assert exchange.disconnect() is False
    assert (client.writes, [(record.status, record.sent) for record in records]) == ([], [(499, 0)])
