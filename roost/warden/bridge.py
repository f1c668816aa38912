"""Bridge to the server: many streams in both directions over one carrier, where the server cannot reach our socket.

A stream that the server opens is a connection like those at the socket, and the server is trusted. A stream whose
window is full waits without holding up others. `docs/builders/warden-protocol.md` describes the frames.
"""

from __future__ import annotations

import errno

from .event_loop import READ, WRITE, EventLoop
from .light_imports import Socket, socket, struct, suppress
from .streams import receive_chunk
from .waiting import TimeLimit, create_background_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .streams import SocketHandler

WINDOW_BYTES, RELAY_WINDOW_BYTES = 1024 * 1024, 256 * 1024
DATA_BYTES, CARRIER_BYTES = 128 * 1024, 512 * 1024
MAX_STREAMS = 512
SILENT_SECONDS = 30.0
"""The server asks for an answer every 10 s. containerd keeps a carrier open when Docker has died."""
HEADER = struct.Struct("!cII")


class WardenBridge:
    """The warden's end of a bridge, on a connected socket that leads to the server."""

    def __init__(self, carrier: Socket, handle: SocketHandler) -> None:
        self._carrier, self._handle = carrier, handle
        self._streams: dict[int, BridgeStream] = {}
        self._unsent: list[bytes] = []
        self._unsent_bytes = self._last_own = 0
        self._waiting: list[Callable[[], None]] = []

    async def run(self) -> None:
        """Pass on frames until the carrier ends, or is silent; then all streams break. Raises OSError, ValueError."""
        received = b""
        try:
            while data := await self._receive():
                received += data
                at = 0
                while len(received) - at >= HEADER.size:
                    kind, number, count = HEADER.unpack_from(received, at)
                    end = at + HEADER.size + (count if kind == b"d" else 0)
                    if end > len(received):
                        break
                    self._take_frame(kind, number, count, received[at + HEADER.size : end])
                    at = end
                received = received[at:]
        finally:
            for stream in [*self._streams.values()]:
                stream.close()
            EventLoop.running.watch(self._carrier.fileno(), WRITE, None)

    async def _receive(self) -> bytes:
        with TimeLimit(SILENT_SECONDS):
            return await receive_chunk(self._carrier, CARRIER_BYTES)

    def open_relay(self, name: str) -> Socket:
        """Return a socket that leads to a relay of the server. Raises ConnectionRefusedError."""
        if len(self._streams) >= 2 * MAX_STREAMS:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "too many streams")
        self._last_own += 2
        self.send(b"o", self._last_own, name.encode())
        return self._add_stream(self._last_own, 0)  # the server's first `w` says that it has accepted the stream

    def send(self, kind: bytes, number: int, data: bytes = b"", *, count: int = 0) -> None:
        frame = HEADER.pack(kind, number, count or len(data)) + data
        self._unsent.append(frame)
        self._unsent_bytes += len(frame)
        if len(self._unsent) == 1:
            self._flush()

    def is_full(self) -> bool:
        return self._unsent_bytes >= CARRIER_BYTES

    def wait(self, callback: Callable[[], None]) -> None:
        """Call a function when the carrier has space."""
        self._waiting.append(callback)

    def forget(self, number: int) -> None:
        self._streams.pop(number, None)

    def _flush(self) -> None:
        loop, fd = EventLoop.running, self._carrier.fileno()
        try:
            while self._unsent:
                sent = self._carrier.sendmsg(self._unsent[:64])
                self._unsent_bytes -= sent
                while self._unsent and sent >= len(self._unsent[0]):
                    sent -= len(self._unsent.pop(0))
                if sent:
                    self._unsent[0] = self._unsent[0][sent:]
        except BlockingIOError:
            loop.watch(fd, WRITE, self._flush)
        except OSError:  # `run` gets it, too
            self._unsent, self._unsent_bytes = [], 0
            loop.watch(fd, WRITE, None)
        else:
            loop.watch(fd, WRITE, None)
        if not self.is_full():
            waiting, self._waiting = self._waiting, []
            for callback in waiting:
                callback()

    def _take_frame(self, kind: bytes, number: int, count: int, data: bytes) -> None:
        if kind == b"o":
            if len(self._streams) >= 2 * MAX_STREAMS:
                self.send(b"r", number)
            else:
                create_background_task(self._serve(self._add_stream(number, WINDOW_BYTES)))
        elif kind == b"p":
            self.send(b"p", 0)
        elif stream := self._streams.get(number):
            stream.take_frame(kind, count, data)

    def _add_stream(self, number: int, window: int) -> Socket:
        ours, theirs = _socket_pair()
        self._streams[number] = BridgeStream(self, number, window, ours)
        return theirs

    async def _serve(self, sock: Socket) -> None:
        with sock, suppress(OSError):
            await self._handle(sock)


class BridgeStream:
    """Stream between the carrier and a socket pair, whose other end the rest of the warden has."""

    def __init__(self, bridge: WardenBridge, number: int, window: int, sock: Socket) -> None:
        self._bridge, self._number, self._window, self._sock = bridge, number, window, sock
        self._unwritten = bytearray()
        self._consumed = 0
        self._our_end = self._their_end = self._closed = False
        self._watch_reading()

    def take_frame(self, kind: bytes, count: int, data: bytes) -> None:
        if kind == b"d":
            self._unwritten += data
            self._write()
        elif kind == b"w":
            self._window += count
            self._watch_reading()
        elif kind == b"e":
            self._their_end = True
            self._write()
        elif kind == b"s":
            with suppress(OSError):
                self._sock.shutdown(socket.SHUT_RD)  # its programs get EPIPE
            self._end()
        else:
            self.close()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            loop, fd = EventLoop.running, self._sock.fileno()
            loop.watch(fd, READ, None)
            loop.watch(fd, WRITE, None)
            self._sock.close()
            self._bridge.forget(self._number)

    def _watch_reading(self) -> None:
        is_wanted = self._window > 0 and not self._our_end and not self._closed
        if not self._closed:
            EventLoop.running.watch(self._sock.fileno(), READ, self._read if is_wanted else None)

    def _read(self) -> None:
        if self._bridge.is_full():
            EventLoop.running.watch(self._sock.fileno(), READ, None)
            self._bridge.wait(self._watch_reading)
            return
        try:
            data = self._sock.recv(min(self._window, DATA_BYTES))
        except BlockingIOError:
            return
        except OSError:
            self._break()
            return
        if data:
            self._window -= len(data)
            self._bridge.send(b"d", self._number, data)
            self._watch_reading()
        else:
            self._end()

    def _end(self) -> None:
        """Send that no more data follows; the stream is over when the other end has said that, too."""
        if not self._our_end:
            self._our_end = True
            self._bridge.send(b"e", self._number)
            self._watch_reading()
        if self._their_end and not self._unwritten:
            self.close()

    def _write(self) -> None:
        loop, fd = EventLoop.running, self._sock.fileno()
        try:
            while self._unwritten:
                sent = self._sock.send(self._unwritten)
                del self._unwritten[:sent]
                self._consumed += sent
        except BlockingIOError:
            loop.watch(fd, WRITE, self._write)
        except OSError:  # the other end of the pair is closed
            self._break()
            return
        else:
            loop.watch(fd, WRITE, None)
        if self._consumed >= (WINDOW_BYTES if self._number % 2 else RELAY_WINDOW_BYTES) // 2:
            self._bridge.send(b"w", self._number, count=self._consumed)
            self._consumed = 0
        if self._their_end and not self._unwritten:
            with suppress(OSError):
                self._sock.shutdown(socket.SHUT_WR)
            if self._our_end:
                self.close()

    def _break(self) -> None:
        self._bridge.send(b"r", self._number)
        self.close()


def _socket_pair() -> tuple[Socket, Socket]:
    pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    ours, theirs = (Socket(socket.AF_UNIX, fileno=sock.detach()) for sock in pair)
    return ours, theirs
