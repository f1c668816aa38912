"""A head goes out with the body right behind it, alone where none comes, and never behind what follows it."""

import asyncio
import re
from collections.abc import Iterable
from typing import Any, cast

from roost.hosts.edge.write_coalescer import WriteCoalescer
from tests.hosts.edge.support import AGENT, TOKEN, Site, Wire


class Transport:
    def __init__(self) -> None:
        self.writes: list[bytes] = []
        self.closed = False

    def write(self, data: bytes) -> None:
        assert not self.closed
        self.writes.append(data)

    def writelines(self, lines: Iterable[bytes]) -> None:
        whole = list(lines)
        assert all(whole)
        self.write(b"".join(whole))

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


def together() -> tuple[Transport, WriteCoalescer]:
    transport: Any = Transport()
    return transport, WriteCoalescer(cast("asyncio.Transport", transport), asyncio.get_running_loop())


async def test_a_head_goes_out_with_what_comes_right_after_it() -> None:
    transport, line = together()
    for piece in (b"head", b"body", b"more"):
        line.write(piece)
    await asyncio.sleep(0)
    assert transport.writes == [b"headbody", b"more"]


async def test_a_head_alone_waits_for_nothing() -> None:
    transport, line = together()
    line.write(b"head")
    await asyncio.sleep(0)
    assert transport.writes == [b"head"]
    line.write(b"body")
    assert transport.writes == [b"head", b"body"]


async def test_a_head_with_nothing_behind_it() -> None:
    transport, line = together()
    line.write(b"head")
    line.write(b"")
    assert transport.writes == [b"head"]


async def test_a_head_goes_out_before_the_end() -> None:
    transport, line = together()
    line.write(b"head")
    line.close()
    await asyncio.sleep(0)
    assert (transport.writes, transport.closed, line.is_closing()) == ([b"head"], True, True)


async def test_nothing_is_written_where_the_connection_is_lost() -> None:
    transport, line = together()
    line.write(b"head")
    transport.close()
    await asyncio.sleep(0)
    assert transport.writes == []


def test_answers_without_a_body_keep_their_place_in_line(site: Site, wire: Wire) -> None:
    """The application's, an agent's, the application's, and a refusal, which is written by somebody else each time."""
    head = f"HEAD /x HTTP/1.1\r\nHost: localhost:{site.port}\r\n\r\n"
    agents = f"GET /v1/x HTTP/1.1\r\nHost: {AGENT}.agents.localhost\r\nAuthorization: Bearer not-{TOKEN}\r\n\r\n"
    wire.send((head + agents + head + "no request\r\n\r\n").encode())
    assert re.findall(rb"HTTP/1\.1 (\d+)", wire.rest()) == [b"200", b"401", b"200", b"400"]
