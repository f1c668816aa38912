"""A WebSocket client over an open byte stream, with the I/O-free protocol of `websockets`.

Messages are text and limited in size.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Self

from websockets.client import ClientProtocol
from websockets.exceptions import WebSocketException
from websockets.frames import Frame, Opcode
from websockets.protocol import State
from websockets.uri import parse_uri

from roost.drivers.engine.contract import EngineFailed
from roost.drivers.runtime.contract import Stream

_CHUNK = 65536


class StreamWebSocket:
    """An open connection. Any number of tasks can send, one can receive."""

    def __init__(self, stream: Stream, protocol: ClientProtocol) -> None:
        self._reader, self._writer = stream
        self._protocol = protocol

    @classmethod
    @asynccontextmanager
    async def open(cls, stream: Stream, uri: str, max_size: int) -> AsyncGenerator[Self]:
        """Upgrade a stream; the caller sets the deadline. Raises EngineFailed if the gateway refuses the upgrade."""
        protocol = ClientProtocol(parse_uri(uri), max_size=max_size)
        socket = cls(stream, protocol)
        try:
            await socket._upgrade()
            yield socket
        finally:
            socket._close()

    async def send(self, text: str) -> None:
        """Send a message. Raises EngineFailed if the connection is closed."""
        if self._protocol.state is not State.OPEN:
            raise EngineFailed(self._close_reason())
        self._protocol.send_text(text.encode())
        await self._flush()

    async def receive(self) -> AsyncGenerator[str]:
        """Yield messages until the connection ends, then raise EngineFailed with the close code."""
        parts = bytearray()
        while True:
            for event in self._protocol.events_received():
                if isinstance(event, Frame) and event.opcode in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
                    parts += event.data
                    if event.fin:
                        yield parts.decode(errors="replace")
                        parts.clear()
            if self._protocol.state is State.CLOSED or not await self._fill():
                raise EngineFailed(self._close_reason())

    async def _upgrade(self) -> None:
        self._protocol.send_request(self._protocol.connect())
        await self._flush()
        while self._protocol.state is State.CONNECTING and self._protocol.handshake_exc is None:
            if not await self._fill():
                break
        if self._protocol.state is not State.OPEN:
            raise EngineFailed(f"The gateway refused the WebSocket: {self._protocol.handshake_exc}")

    async def _fill(self) -> bool:
        """Read from the stream into the protocol once; return False at the end of the stream."""
        try:
            data = await self._reader.read(_CHUNK)
            if data:
                self._protocol.receive_data(data)
            else:
                self._protocol.receive_eof()
            await self._flush()  # sends pongs and the answer to a close
        except (OSError, WebSocketException, EOFError):
            return False
        return bool(data)

    async def _flush(self) -> None:
        for data in self._protocol.data_to_send():
            if data:
                self._writer.write(data)
        try:
            await self._writer.drain()
        except OSError as error:
            raise EngineFailed(f"The gateway closed the connection: {error}") from error

    def _close_reason(self) -> str:
        close = self._protocol.close_rcvd or self._protocol.close_sent
        reason = f"{close.code}: {close.reason}" if close else "without a close frame"
        return f"The connection to the gateway ended ({reason})"

    def _close(self) -> None:
        if self._protocol.state is State.OPEN:
            self._protocol.send_close(1000)
            for data in self._protocol.data_to_send():
                self._writer.write(data)
        self._writer.close()
