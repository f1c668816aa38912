"""The server's end of a bridge: windows, ends of streams, relays, and hostile frames."""

import asyncio
import random
from contextlib import suppress

import pytest

from roost.core.machine.unix_socket import Stream
from roost.drivers.runtime.bridge import RELAY_WINDOW_BYTES, WINDOW_BYTES, BridgeTransport
from roost.warden_client.errors import ContainerNotRunning
from tests.drivers.runtime.bridge_ends import BridgeEnds, frame, open_ends

pytestmark = pytest.mark.anyio
CHUNK = 128 * 1024


async def open_stream(ends: BridgeEnds) -> tuple[Stream, int]:
    stream = ends.bridge.open()
    kind, number, *_ = await ends.receive()
    assert (kind, number % 2) == (b"o", 1)
    return stream, number


async def test_a_stream_carries_bytes_in_both_directions() -> None:
    async with open_ends() as ends:
        (reader, writer), number = await open_stream(ends)
        writer.write(b"question")
        writer.write_eof()
        assert await ends.receive() == (b"d", number, 8, b"question")
        assert await ends.receive() == (b"e", number, 0, b"")
        await ends.send(frame(b"d", number, b"answer"), frame(b"e", number))
        assert await reader.read() == b"answer"
        writer.close()
        await writer.wait_closed()


async def test_streams_do_not_mix() -> None:
    async with open_ends() as ends:
        opened = [await open_stream(ends) for _ in range(20)]
        for _, number in reversed(opened):
            await ends.send(frame(b"d", number, b"%d" % number), frame(b"e", number))
        assert [await reader.read() for (reader, _), _ in opened] == [b"%d" % number for _, number in opened]


async def test_a_slow_reader_gets_no_more_than_a_window_and_holds_up_nobody() -> None:
    async with open_ends() as ends:
        (_, slow), number = await open_stream(ends)
        (_, other), other_number = await open_stream(ends)
        slow.write(b"x" * 10 * WINDOW_BYTES)
        received = 0
        while received < WINDOW_BYTES:
            kind, of, count, _ = await ends.receive()
            assert (kind, of) == (b"d", number)
            received += count
        assert received == WINDOW_BYTES
        other.write(b"hello")
        assert await ends.receive() == (b"d", other_number, 5, b"hello")
        await ends.send(frame(b"w", number, count=10))
        assert (await ends.receive())[:3] == (b"d", number, 10)
        writing = asyncio.ensure_future(slow.drain())
        await asyncio.wait([writing], timeout=0.01)
        assert not writing.done()
        slow.transport.abort()
        async with asyncio.timeout(5):
            await writing


async def test_an_unread_stream_lets_the_other_end_send_one_window() -> None:
    async with open_ends() as ends:
        (reader, writer), number = await open_stream(ends)
        transport = writer.transport
        assert isinstance(transport, BridgeTransport)
        transport.pause_reading()
        await ends.send(*(frame(b"d", number, b"y" * CHUNK) for _ in range(WINDOW_BYTES // CHUNK)))
        await ends.reach()
        assert not ends.bridge.ended.done()
        transport.resume_reading()
        assert len(await reader.readexactly(WINDOW_BYTES)) == WINDOW_BYTES
        assert (await ends.receive())[:2] == (b"w", number)
        transport.pause_reading()
        with suppress(ConnectionError):
            await ends.send(*(frame(b"d", number, b"y" * CHUNK) for _ in range(WINDOW_BYTES // CHUNK + 4)))
        async with asyncio.timeout(5):
            await ends.bridge.ended


async def test_the_other_end_reads_no_more() -> None:
    async with open_ends() as ends:
        (reader, writer), number = await open_stream(ends)
        writer.write(b"x" * 2 * WINDOW_BYTES)
        await ends.send(frame(b"s", number), frame(b"d", number, b"why"), frame(b"e", number))
        assert await reader.read() == b"why"
        async with asyncio.timeout(5):
            await writer.wait_closed()


@pytest.mark.parametrize("ending", [b"r", b"carrier"])
async def test_a_reset_ends_readers_and_writers(ending: bytes) -> None:
    async with open_ends() as ends:
        (reader, writer), number = await open_stream(ends)
        writer.write(b"x" * 2 * WINDOW_BYTES)
        if ending == b"r":
            await ends.send(frame(b"r", number))
        else:
            ends.writer.transport.abort()
        async with asyncio.timeout(5):
            with pytest.raises(ConnectionResetError):
                await reader.read()
            with pytest.raises(ConnectionResetError):
                await writer.drain()


async def test_no_stream_opens_and_no_ping_returns_after_the_carrier() -> None:
    async with open_ends() as ends:
        ends.writer.close()
        async with asyncio.timeout(5):
            await ends.bridge.ended
            with pytest.raises(ConnectionResetError):
                await ends.bridge.ping()
        with pytest.raises(ContainerNotRunning):
            ends.bridge.open()


async def test_a_relay_is_accepted_before_its_first_byte_and_others_are_refused() -> None:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello " + await reader.read())
        writer.close()

    async with open_ends({"api": greet}) as ends:
        await ends.send(frame(b"o", 2, b"api"), frame(b"o", 4, b"unknown"), frame(b"o", 6, b"\xff\xfe"))
        assert await ends.receive() == (b"w", 2, RELAY_WINDOW_BYTES, b"")
        assert await ends.receive() == (b"r", 4, 0, b"")
        assert await ends.receive() == (b"r", 6, 0, b"")
        await ends.send(frame(b"d", 2, b"you"), frame(b"e", 2))
        assert await ends.receive() == (b"d", 2, 9, b"hello you")


async def test_a_container_opens_a_bounded_number_of_streams() -> None:
    waiting = asyncio.Event()

    async def hold(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await waiting.wait()
        writer.close()

    async with open_ends({"api": hold}) as ends:
        await ends.send(*(frame(b"o", number, b"api") for number in range(2, 2 * 600 + 2, 2)))
        kinds = [(await ends.receive())[0] for _ in range(600)]
        assert (kinds.count(b"w"), kinds.count(b"r")) == (512, 88)
        waiting.set()


@pytest.mark.parametrize(
    "hostile",
    [
        frame(b"z", 1),
        frame(b"\0", 1, count=2**32 - 1),
        frame(b"d", 1, count=2**32 - 1),
        frame(b"d", 1, count=CHUNK + 1),
        frame(b"o", 2, b"x" * 65),
        frame(b"o", 3, b"api"),
        frame(b"o", 0, b"api"),
        frame(b"o", 4, b"api") + frame(b"o", 2, b"api"),
        frame(b"w", 1, count=2**32 - 1),
        frame(b"w", 1, count=1),
        frame(b"e", 1) + frame(b"d", 1, b"more"),
        frame(b"d", 1, b"x" * CHUNK) * 9,
    ],
)
async def test_a_hostile_frame_ends_the_carrier_and_all_its_streams(hostile: bytes) -> None:
    async with open_ends() as ends:
        (reader, writer), number = await open_stream(ends)
        transport = writer.transport
        assert isinstance(transport, BridgeTransport)
        assert number == 1
        transport.pause_reading()
        with suppress(ConnectionError):
            await ends.send(hostile)
        async with asyncio.timeout(5):
            await ends.bridge.ended
            with pytest.raises(ConnectionResetError):
                await reader.read()


async def test_an_end_that_reads_no_answers_is_given_up() -> None:
    async with open_ends() as ends:
        last = 2
        while not ends.bridge.ended.done():
            assert last < 2_000_000
            try:
                await ends.send(*(frame(b"o", number, b"x") for number in range(last, last + 20_000, 2)))
            except ConnectionError:
                break
            last += 20_000
        async with asyncio.timeout(5):
            await ends.bridge.ended


async def test_empty_data_costs_nothing() -> None:
    async with open_ends() as ends:
        (reader, writer), number = await open_stream(ends)
        writer.transport.pause_reading()  # pyright: ignore[reportAttributeAccessIssue] - it reads, too
        await ends.send(*(frame(b"d", number) for _ in range(1000)), frame(b"e", number))
        await ends.reach()
        assert not ends.bridge._streams[number]._unread
        writer.transport.resume_reading()  # pyright: ignore[reportAttributeAccessIssue] - as above
        assert await reader.read() == b""


@pytest.mark.parametrize("known", [b"d", b"w", b"e", b"s", b"r"])
async def test_frames_of_streams_that_ended_are_ignored(known: bytes) -> None:
    async with open_ends() as ends:
        (_, writer), number = await open_stream(ends)
        writer.transport.abort()
        assert (await ends.receive())[0] == b"r"
        await ends.send(frame(known, number, b"late" if known == b"d" else b""), frame(known, 999, b""))
        await ends.reach()
        assert not ends.bridge.ended.done()


async def test_a_frame_may_come_in_pieces() -> None:
    async with open_ends() as ends:
        (reader, _), number = await open_stream(ends)
        for byte in frame(b"d", number, b"slowly") + frame(b"e", number):
            await ends.send(bytes([byte]))
            await asyncio.sleep(0)
        assert await reader.read() == b"slowly"


@pytest.mark.parametrize("seed", range(60))
async def test_random_frames_keep_memory_bounded_and_end_or_leave_a_working_bridge(seed: int) -> None:
    rng = random.Random(seed)

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while await reader.read(1000):
                pass
        writer.close()

    async with open_ends({"api": hold}) as ends:
        opened = [await open_stream(ends) for _ in range(3)]
        for _ in range(300):
            kind = rng.choice([b"o", b"d", b"w", b"e", b"s", b"r", b"p", bytes([rng.randrange(256)])])
            data = rng.randbytes(rng.choice([0, 1, 100, CHUNK])) if kind == b"d" else b""
            if kind == b"o":
                data = rng.choice([b"api", b"other", b""])
            count = rng.choice([len(data), len(data), len(data), rng.randrange(2**32)]) if rng.random() < 0.05 else None
            try:
                await ends.send(frame(kind, rng.randrange(12), data, count=count))
            except ConnectionError:
                break
        streams = ends.bridge._streams.values()
        assert all(len(stream._unread) <= WINDOW_BYTES for stream in streams)
        if not ends.bridge.ended.done():
            ends.writer.write_eof()
        async with asyncio.timeout(5):
            await ends.bridge.ended
        assert not streams
        assert all(writer.is_closing() for (_, writer), _ in opened)
