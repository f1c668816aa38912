"""Writes of several connections that go out together: order, large ones, closed transports."""

import asyncio
from typing import cast

import pytest

from roost.http.server.write_coalescer import WriteCoalescer


class RecordingTransport:
    def __init__(self, log: list[tuple[str, bytes]], name: str) -> None:
        self.log, self.name, self.is_closed = log, name, False

    def write(self, data: bytes) -> None:
        assert not self.is_closed
        self.log.append((self.name, data))

    def is_closing(self) -> bool:
        return self.is_closed


@pytest.fixture
def log() -> list[tuple[str, bytes]]:
    return []


def transport(log: list[tuple[str, bytes]], name: str) -> asyncio.WriteTransport:
    return cast("asyncio.WriteTransport", RecordingTransport(log, name))


async def test_writes_of_a_turn_go_out_together_and_in_order(log: list[tuple[str, bytes]]) -> None:
    writes, first, second = WriteCoalescer(), transport(log, "first"), transport(log, "second")
    for data in (b"a", b"b"):
        writes.write(first, data)
        writes.write(second, data)
    assert log == []
    await asyncio.sleep(0)
    assert log == [("first", b"ab"), ("second", b"ab")]
    writes.write(first, b"c")
    await asyncio.sleep(0)
    assert log[2:] == [("first", b"c")]


async def test_a_large_write_does_not_wait_and_passes_none(log: list[tuple[str, bytes]]) -> None:
    writes, first, second = WriteCoalescer(), transport(log, "first"), transport(log, "second")
    writes.write(first, b"head")
    writes.write(second, b"other")
    writes.write(first, bytes(20_000))
    assert log == [("first", b"head"), ("first", bytes(20_000))]
    await asyncio.sleep(0)
    assert log[2:] == [("second", b"other")]


async def test_a_flush_concerns_one_transport(log: list[tuple[str, bytes]]) -> None:
    writes, first, second = WriteCoalescer(), transport(log, "first"), transport(log, "second")
    writes.write(first, b"a")
    writes.write(second, b"b")
    writes.flush(first)
    writes.flush(first)
    assert log == [("first", b"a")]
    await asyncio.sleep(0)
    assert log == [("first", b"a"), ("second", b"b")]


async def test_closed_transports_get_nothing(log: list[tuple[str, bytes]]) -> None:
    writes, flushed, waiting = WriteCoalescer(), RecordingTransport(log, "flushed"), RecordingTransport(log, "waiting")
    for one in (flushed, waiting):
        writes.write(cast("asyncio.WriteTransport", one), b"a")
        one.is_closed = True
    writes.flush(cast("asyncio.WriteTransport", flushed))
    await asyncio.sleep(0)
    assert log == []
