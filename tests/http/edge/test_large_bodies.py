"""Large bodies: they stay whole, and so does all that comes beside, before and after them."""

import asyncio
import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import uvloop
from websockets.sync.client import connect

from tests.http.edge.support import EdgeServer, Wire, eventually, request, running_edge

READ = 1024**2
ONE_READ = 256 * 1024
"""The most that both loops read at once."""


@dataclass
class BodyReader:
    """An application that reads bodies and says what they were; a WebSocket gets back what it sends."""

    largest: int = 0
    cut: list[str] = field(default_factory=list[str])

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.accept"})
            await send({"type": "websocket.send", "text": (await receive())["text"]})
        elif scope["type"] == "http":
            await self._read(scope, receive, send)

    async def _read(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        digest, size, more = hashlib.sha256(), 0, not scope["path"].endswith("unread")
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.cut.append(scope["path"])
                return
            piece, more = message["body"], message["more_body"]
            digest.update(piece)
            size += len(piece)
            self.largest = max(self.largest, len(piece))
        told = f"{scope['path']} {size} {digest.hexdigest()}".encode()
        headers = [(b"content-length", b"%d" % len(told))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": told})


@pytest.fixture
def reader() -> BodyReader:
    return BodyReader()


@pytest.fixture(params=[uvloop.new_event_loop, asyncio.new_event_loop], ids=["uvloop", "asyncio"])
def edge(request: pytest.FixtureRequest, reader: BodyReader) -> Iterator[EdgeServer]:
    with running_edge(app=reader, loop_factory=request.param) as edge:
        yield edge


@pytest.fixture
def wire(edge: EdgeServer) -> Iterator[Wire]:
    with edge.connect() as sock:
        yield Wire(sock)


def post(target: str, body: bytes, chunk: int | None = None) -> bytes:
    length = f"Content-Length: {len(body)}" if chunk is None else "Transfer-Encoding: chunked"
    head = request(f"/v0/{target}", method="POST", host="localhost", headers=f"{length}\r\n")
    if chunk is None:
        return head + body
    chunks = (body[at : at + chunk] for at in range(0, len(body), chunk))
    return head + b"".join(b"%x\r\n%b\r\n" % (len(each), each) for each in chunks) + b"0\r\n\r\n"


def body_receipt(target: str, body: bytes) -> bytes:
    return f"/v0/{target} {len(body)} {hashlib.sha256(body).hexdigest()}".encode()


def content(size: int) -> bytes:
    return random.Random(size).randbytes(size)


def test_a_client_may_leave_in_a_large_body(wire: Wire, reader: BodyReader) -> None:
    wire.send(request("/v0/left", method="POST", host="localhost", headers=f"Content-Length: {2**40}\r\n"))
    wire.send(bytes(8 * READ))
    wire.sock.close()
    eventually(lambda: reader.cut == ["/v0/left"])
    assert reader.largest <= ONE_READ


@pytest.mark.parametrize("chunk", [None, 5 * READ, 300_000, 10_000], ids=["whole", "huge", "large", "small"])
def test_requests_of_any_size_one_after_another(wire: Wire, chunk: int | None) -> None:
    bodies = [content(size) for size in (10 * READ + 1, 5, READ, 0, 3 * ONE_READ)]
    wire.send(b"".join(post(f"{number}", body, chunk) for number, body in enumerate(bodies)))
    for number, body in enumerate(bodies):
        assert wire.reply().body == body_receipt(f"{number}", body)


def test_a_websocket_after_a_large_body(edge: EdgeServer, wire: Wire) -> None:
    body = content(10 * READ)
    wire.send(post("first", body))
    assert wire.reply().body == body_receipt("first", body)
    with connect(f"ws://localhost:{edge.port}/v0/w", sock=wire.sock, compression=None) as websocket:
        websocket.send("it is read")
        assert websocket.recv(20) == "it is read"


def test_a_large_body_nobody_wants_is_read_off(wire: Wire) -> None:
    body = content(10 * READ)
    wire.send(post("unread", body) + post("next", b"x"))
    assert wire.reply().body == body_receipt("unread", b"")
    assert wire.reply().body == body_receipt("next", b"x")


def test_garbage_in_a_large_body(wire: Wire, reader: BodyReader) -> None:
    wire.send(post("broken", content(10 * READ), READ)[: -len(b"0\r\n\r\n")] + b"zz\r\n")
    assert wire.error(400)
    assert wire.closed()
    eventually(lambda: reader.cut == ["/v0/broken"])


def test_small_chunks_come_in_small_reads(wire: Wire, reader: BodyReader) -> None:
    """Each chunk costs, and everybody waits for all of one read."""
    large, small = content(4 * READ), content(200_000)
    wire.send(post("large", large, READ) + post("small", small, 1))
    assert wire.reply().body == body_receipt("large", large)
    assert wire.reply().body == body_receipt("small", small)
    assert reader.largest <= ONE_READ


def test_uploads_side_by_side_do_not_mix(edge: EdgeServer) -> None:
    bodies = [content(6 * READ + number) for number in range(3)]
    wires = [Wire(edge.connect()) for _ in bodies]
    whole = [post("side", body) for body in bodies]
    for at in range(0, max(map(len, whole)), 2 * ONE_READ):
        for each, data in zip(wires, whole, strict=True):
            each.send(data[at : at + 2 * ONE_READ])
    for each, body in zip(wires, bodies, strict=True):
        assert each.reply().body == body_receipt("side", body)
        each.sock.close()
