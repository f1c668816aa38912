"""A response's head is written with the body that follows it, alone without one, and never after what follows it."""

import asyncio
import re
from collections.abc import Iterable
from typing import cast

from roost.http.server.asgi_exchange import ResponseWriter
from tests.http.edge.support import AGENT, TOKEN, EdgeServer, Wire


class Transport:
    def __init__(self) -> None:
        self.writes: list[bytes] = []
        self.closed = False

    def write(self, data: bytes) -> None:
        assert not self.closed
        self.writes.append(data)

    def writelines(self, parts: Iterable[bytes]) -> None:
        parts = list(parts)
        assert all(parts)
        self.write(b"".join(parts))

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


def response_writer() -> tuple[Transport, ResponseWriter]:
    transport = Transport()
    return transport, ResponseWriter(cast("asyncio.Transport", transport), asyncio.get_running_loop())


async def test_a_head_is_written_with_the_body_that_follows_it() -> None:
    transport, writer = response_writer()
    for part in (b"head", b"body", b"more"):
        writer.write(part)
    await asyncio.sleep(0)
    assert transport.writes == [b"headbody", b"more"]


async def test_a_head_does_not_wait_for_a_later_body() -> None:
    transport, writer = response_writer()
    writer.write(b"head")
    await asyncio.sleep(0)
    assert transport.writes == [b"head"]
    writer.write(b"body")
    assert transport.writes == [b"head", b"body"]


async def test_a_head_is_written_before_the_connection_is_closed() -> None:
    transport, writer = response_writer()
    writer.write(b"head")
    writer.close()
    await asyncio.sleep(0)
    assert (transport.writes, transport.closed, writer.is_closing()) == ([b"head"], True, True)


async def test_nothing_is_written_to_a_lost_connection() -> None:
    transport, writer = response_writer()
    writer.write(b"head")
    transport.close()
    await asyncio.sleep(0)
    assert transport.writes == []


def test_responses_without_a_body_keep_their_order(edge: EdgeServer, wire: Wire) -> None:
    """The application's, an agent's, the application's, and an error; each is written by another object."""
    head = f"HEAD /x HTTP/1.1\r\nHost: localhost:{edge.port}\r\n\r\n"
    agents = f"GET /v1/x HTTP/1.1\r\nHost: {AGENT}.agents.localhost\r\nAuthorization: Bearer not-{TOKEN}\r\n\r\n"
    wire.send((head + agents + head + "no request\r\n\r\n").encode())
    assert re.findall(rb"HTTP/1\.1 (\d+)", wire.rest()) == [b"200", b"401", b"200", b"400"]
