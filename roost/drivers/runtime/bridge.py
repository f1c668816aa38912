"""Bridge to a container: many streams in both directions over one carrier, each with a window of its own.

A carrier is any byte stream to the container's warden. Streams have numbers, odd ones those that the server opens. A
frame is a kind, the number of its stream, and a count: of the bytes that follow, or in `w` of bytes that the other end
may send (`docs/builders/warden-protocol.md`). What a container sends is hostile: for each stream that the server opened
or accepted it can keep one window of bytes in memory, and anything else ends its carrier.
"""

import asyncio
import struct
from collections import deque
from collections.abc import Callable
from typing import cast

from roost.core import clock
from roost.core.machine.unix_socket import Stream, StreamHandler
from roost.warden_client.errors import ContainerNotRunning

WINDOW_BYTES, RELAY_WINDOW_BYTES = 1024 * 1024, 256 * 1024  # a container can open 512 of the latter
_DATA_BYTES, _NAME_BYTES = 128 * 1024, 64
_ACCEPTED, _ACCEPTED_OF_SERVERS = 512, 4096
_HIGH_WATER, _LOW_WATER = 64 * 1024, 16 * 1024
_CARRIER_HIGH_WATER, _CARRIER_BYTES = 512 * 1024, 2 * 1024 * 1024
_LIMITS = {b"o": _NAME_BYTES, b"d": _DATA_BYTES, **dict.fromkeys((b"w", b"e", b"s", b"r", b"p"), 0)}
_HEADER = struct.Struct("!cII")

FindHandler = Callable[[str], StreamHandler | None]
"""Returns the handler of the streams of a relay, None if the relay is not open."""


class Bridge(asyncio.Protocol):
    """The server's end of a bridge, a protocol of the carrier's transport."""

    def __init__(self, find_handler: FindHandler) -> None:
        self._find_handler = find_handler
        self._carrier: asyncio.WriteTransport | None = None
        self._received = bytearray()
        self._streams: dict[int, BridgeTransport] = {}
        self._waiting: deque[BridgeTransport] = deque()
        self._last_own, self._last_theirs, self._accepted = -1, 0, 0
        self._pings: deque[asyncio.Future[None]] = deque()
        self.is_full = False
        self._sent_at = self._heard_at = clock.monotonic_seconds()
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def open(self) -> Stream:
        """Open a stream to the warden. Raises ContainerNotRunning if the carrier has ended."""
        if self._carrier is None:
            raise ContainerNotRunning
        self._last_own += 2
        stream = _make_stream(self, self._last_own, WINDOW_BYTES)
        self._streams[self._last_own] = stream[1].transport  # pyright: ignore[reportArgumentType] - it is ours
        self.send(b"o", self._last_own)
        return stream

    @property
    def idle_seconds(self) -> float:
        """Time since which one of the two ends has sent nothing."""
        return clock.monotonic_seconds() - min(self._sent_at, self._heard_at)

    async def ping(self) -> None:
        """Return when the warden has answered. Raises ConnectionError when the carrier ends before that."""
        answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pings.append(answered)
        self.send(b"p", 0)
        await asyncio.wait((answered, self.ended), return_when=asyncio.FIRST_COMPLETED)
        if not answered.done():
            raise ConnectionResetError("the bridge to the container broke")

    def abort(self) -> None:
        """Break the carrier and all streams."""
        carrier, self._carrier = self._carrier, None
        if carrier is not None:
            carrier.abort()
        for stream in list(self._streams.values()):
            stream.lose(ConnectionResetError("the bridge to the container broke"))
        if not self.ended.done():
            self.ended.set_result(None)

    # Used by the streams

    def send(self, kind: bytes, number: int, data: bytes | memoryview = b"", *, count: int = 0) -> None:
        if self._carrier is not None:
            self._sent_at = clock.monotonic_seconds()
            self._carrier.write(_HEADER.pack(kind, number, count or len(data)))
            if data:
                self._carrier.write(data)

    def wait(self, stream: "BridgeTransport") -> None:
        """Call the `flush` of the stream when the carrier has space."""
        if stream not in self._waiting:
            self._waiting.append(stream)

    def forget(self, number: int) -> None:
        if self._streams.pop(number, None) and number % 2 == 0:
            self._accepted -= 1

    # Called by the carrier's transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._carrier = cast("asyncio.WriteTransport", transport)
        self._carrier.set_write_buffer_limits(_CARRIER_HIGH_WATER)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the streams report it
        for number, stream in list(self._streams.items()):
            if number % 2:  # a container that opens streams and carriers without end must not have them kept
                stream.finish_reading()
        self.abort()

    def pause_writing(self) -> None:
        self.is_full = True

    def resume_writing(self) -> None:
        self.is_full = False
        while self._waiting and not self.is_full:
            self._waiting.popleft().flush()

    def data_received(self, data: bytes) -> None:
        self._heard_at = clock.monotonic_seconds()
        self._received += data
        at, view = 0, memoryview(self._received)
        try:
            while len(view) - at >= _HEADER.size:
                kind, number, count = _HEADER.unpack_from(view, at)
                end = at + _HEADER.size + (_data_length(kind, count))
                if end > len(view):
                    break
                self._take_frame(kind, number, count, bytes(view[at + _HEADER.size : end]))
                at = end
            self._check_carrier()
        except ValueError:
            self.abort()
        finally:
            view.release()
        del self._received[:at]

    def _check_carrier(self) -> None:
        """Raise ValueError if the other end makes us answer, and does not read the answers."""
        if self._carrier is not None and self._carrier.get_write_buffer_size() > _CARRIER_BYTES:
            raise ValueError

    def _take_frame(self, kind: bytes, number: int, count: int, data: bytes) -> None:
        """Process a frame; those of streams that ended here meanwhile are ignored. Raises ValueError."""
        if kind == b"o":
            self._accept_stream(number, data)
        elif kind == b"p":
            if self._pings:
                answered = self._pings.popleft()
                if not answered.done():
                    answered.set_result(None)
        elif stream := self._streams.get(number):
            stream.take_frame(kind, count, data)

    def _accept_stream(self, number: int, data: bytes) -> None:
        is_next = number % 2 == 0 and number > self._last_theirs
        if not is_next:
            raise ValueError
        self._last_theirs = number
        handler = self._find_handler(data.decode("latin-1")) if self._accepted < _ACCEPTED else None
        if handler is None:
            self.send(b"r", number)
            return
        self._accepted += 1
        self._serve_stream(number, RELAY_WINDOW_BYTES, handler)
        self.send(b"w", number, count=RELAY_WINDOW_BYTES)

    def _serve_stream(self, number: int, window: int, handler: StreamHandler) -> None:
        reader, writer = _make_stream(self, number, window)
        self._streams[number] = writer.transport  # pyright: ignore[reportArgumentType] - it is ours
        serving = handler(reader, writer)
        if serving is not None:
            task = asyncio.ensure_future(serving)
            _handlers.add(task)
            task.add_done_callback(_handlers.discard)


class BridgeEnd(Bridge):
    """The other end of a bridge, for a server that another one reaches: it accepts streams, and opens none."""

    def __init__(self, handler: StreamHandler) -> None:
        super().__init__(lambda _: handler)
        self._handler = handler

    def open(self) -> Stream:
        raise ContainerNotRunning

    def _take_frame(self, kind: bytes, number: int, count: int, data: bytes) -> None:
        if kind == b"p":
            self.send(b"p", 0)
        else:
            super()._take_frame(kind, number, count, data)

    def _accept_stream(self, number: int, data: bytes) -> None:  # noqa: ARG002 - the streams of a server have no names
        if number % 2 == 0 or number <= self._last_theirs:
            raise ValueError
        self._last_theirs = number
        if len(self._streams) < _ACCEPTED_OF_SERVERS:
            self._serve_stream(number, WINDOW_BYTES, self._handler)
        else:
            self.send(b"r", number)


def _data_length(kind: bytes, count: int) -> int:
    """Return how many bytes follow the header of a frame. Raises ValueError."""
    if kind not in _LIMITS:
        raise ValueError
    if (limit := _LIMITS[kind]) and count > limit:
        raise ValueError
    return count if limit else 0


_handlers: set[asyncio.Future[None]] = set()  # asyncio keeps no reference to a task


def _make_stream(bridge: Bridge, number: int, window: int) -> Stream:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(loop=loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    transport = BridgeTransport(bridge, number, window, protocol)
    protocol.connection_made(transport)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


class BridgeTransport(asyncio.Transport):
    """Transport of one stream.

    In frames, `s` says that the other end reads no more, `e` that it sends no more, and `r` ends the stream at once.
    """

    def __init__(self, bridge: Bridge, number: int, window: int, protocol: asyncio.BaseProtocol) -> None:
        super().__init__()
        self._bridge, self._number, self._protocol = bridge, number, cast("asyncio.Protocol", protocol)
        self._limit = self._window = self._credit = window  # bytes that we, and they, may send
        self._consumed = 0
        self._unsent: deque[memoryview] = deque()
        self._unsent_bytes = 0
        self._unread = bytearray()
        self._low, self._high = _LOW_WATER, _HIGH_WATER
        self._is_paused = self._is_writing_paused = False
        self._has_ended = self._is_end_sent = self._their_end = self._is_end_delivered = False
        self._is_closing = self._is_lost = False

    # What a transport has

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = cast("asyncio.Protocol", protocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    def is_closing(self) -> bool:
        return self._is_closing

    def is_reading(self) -> bool:
        return not self._is_paused and not self._is_closing

    def pause_reading(self) -> None:
        self._is_paused = True

    def resume_reading(self) -> None:
        if self._is_paused:
            self._is_paused = False
            asyncio.get_running_loop().call_soon(self._deliver)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = _HIGH_WATER if high is None else high
        self._low = self._high // 4 if low is None else low

    def get_write_buffer_size(self) -> int:
        return self._unsent_bytes

    def can_write_eof(self) -> bool:
        return True

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._has_ended or self._is_closing or not data:
            return  # as a socket's transport after the peer has gone
        self._unsent.append(memoryview(data if isinstance(data, bytes) else bytes(data)))
        self._unsent_bytes += len(data)
        self.flush()
        if self._unsent_bytes > self._high and not self._is_writing_paused:
            self._is_writing_paused = True
            self._protocol.pause_writing()

    def write_eof(self) -> None:
        if not self._has_ended:
            self._has_ended = True
            self.flush()

    def close(self) -> None:
        """Send what was written, then end both directions."""
        if not self._is_closing:
            self._is_closing = self._has_ended = True
            self._unread.clear()
            if not self._their_end:
                self._bridge.send(b"s", self._number)
            self.flush()

    def abort(self) -> None:
        if not self._is_lost:
            self._bridge.send(b"r", self._number)
            self.lose(None)

    # Used by the bridge

    def flush(self) -> None:
        """Send as much as the window and the carrier allow."""
        while self._unsent and self._window and not self._is_lost:
            if self._bridge.is_full:
                self._bridge.wait(self)
                return
            first = self._unsent[0]
            data = first[: min(self._window, _DATA_BYTES)]
            self._bridge.send(b"d", self._number, data)
            self._window -= len(data)
            self._unsent_bytes -= len(data)
            if len(data) == len(first):
                self._unsent.popleft()
            else:
                self._unsent[0] = first[len(data) :]
        if self._is_writing_paused and self._unsent_bytes <= self._low:
            self._is_writing_paused = False
            self._protocol.resume_writing()
        if self._has_ended and not self._unsent and not self._is_lost:
            self._end()

    def take_frame(self, kind: bytes, count: int, data: bytes) -> None:
        """Process a frame of the other end. Raises ValueError."""
        if kind == b"d":
            self._credit -= len(data)
            if self._credit < 0 or self._their_end:
                raise ValueError
            if not self._is_closing:
                self._deliver(data)
        elif kind == b"w":
            self._window += count
            if self._window > self._limit:
                raise ValueError
            self.flush()
        elif kind == b"e":
            self._their_end = True
            self._deliver()
        elif kind == b"s":
            self._unsent.clear()
            self._unsent_bytes, self._has_ended = 0, True
            self.flush()
        else:
            self.lose(ConnectionResetError("the container closed the stream"))

    def finish_reading(self) -> None:
        """Outlive the carrier until what has arrived is read, if the other end had sent all."""
        if self._their_end and not self._is_end_delivered and not self._is_closing:
            self._bridge.forget(self._number)
            self._unsent.clear()
            self._unsent_bytes, self._has_ended, self._is_end_sent = 0, True, True
            self.flush()

    def lose(self, error: Exception | None) -> None:
        """End the stream at once; its protocol learns it in the next turn of the event loop."""
        if not self._is_lost:
            self._is_lost = self._is_closing = self._has_ended = True
            self._unsent.clear()
            self._unread.clear()
            self._unsent_bytes = 0
            self._bridge.forget(self._number)
            asyncio.get_running_loop().call_soon(self._protocol.connection_lost, error)

    def _deliver(self, data: bytes = b"") -> None:
        if self._unread or not self.is_reading():
            self._unread += data
            data = b""
        if self._unread and self.is_reading():
            data = bytes(self._unread)
            self._unread.clear()
        if data:
            self._consumed += len(data)
            self._protocol.data_received(data)
        if self._consumed >= self._limit // 2 and not self._is_lost:
            self._bridge.send(b"w", self._number, count=self._consumed)
            self._credit += self._consumed
            self._consumed = 0
        if self._their_end and not self._unread and self.is_reading() and not self._is_end_delivered:
            self._is_end_delivered = True
            if not self._protocol.eof_received():
                self.close()
            elif self._is_end_sent:
                self.lose(None)

    def _end(self) -> None:
        if not self._is_end_sent:
            self._is_end_sent = True
            self._bridge.send(b"e", self._number)
        if self._is_closing or (self._their_end and not self._unread):
            self.lose(None)
