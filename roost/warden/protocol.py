"""Protocol of a connection: a request line, a reply line, and frames for some operations, all of bounded length."""

import asyncio
import errno
import json
import socket
import struct
from collections.abc import Iterable
from typing import Any

CHUNK_BYTES = 256 * 1024
MAX_FRAME_BYTES = MAX_REQUEST_BYTES = 1 << 20
HEADER = struct.Struct("!cI")

Json = dict[str, Any]


class RequestRefused(Exception):  # noqa: N818 - the protocol's term
    """The request is answered with an error."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Connection:
    """Connection of the server; frames have a type (`d` data, `o`/`e` output, `i` input, `x` end), length and data."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock, self._loop = sock, asyncio.get_running_loop()
        self._replied, self._send_lock = False, asyncio.Lock()

    async def read_request(self) -> Json:
        line = b""
        while not line.endswith(b"\n"):
            data = await self._loop.sock_recv(self.sock, CHUNK_BYTES)
            line += data
            if not data or len(line) > MAX_REQUEST_BYTES:
                raise RequestRefused("badRequest", "no request line")
        return dict(json.loads(line))

    async def send_reply(self, **fields: Any) -> None:
        self._replied = True
        await self._loop.sock_sendall(self.sock, json.dumps({"ok": True, **fields}).encode() + b"\n")

    async def send_frame(self, kind: bytes, data: bytes) -> None:
        async with self._send_lock:
            await self._loop.sock_sendall(self.sock, HEADER.pack(kind, len(data)) + data)

    async def send_end(self, **fields: Any) -> None:
        await self.send_frame(b"x", json.dumps({"ok": True, **fields}).encode())

    async def send_error(self, code: str, message: str) -> None:
        send = self.send_end if self._replied else self.send_reply
        await send(ok=False, error=code, message=message)

    async def send_items(self, items: Iterable[object]) -> None:
        """Send data frames with JSON arrays of bounded length."""
        batch: list[str] = []
        size = 0
        for item in items:
            batch.append(json.dumps(item))
            size += len(batch[-1])
            if size > CHUNK_BYTES:
                await self.send_frame(b"d", f"[{','.join(batch)}]".encode())
                batch, size = [], 0
        if batch:
            await self.send_frame(b"d", f"[{','.join(batch)}]".encode())

    async def read_frame(self) -> tuple[bytes, bytes]:
        """Read the next frame of the client. Raises ConnectionError at the end."""
        kind, length = HEADER.unpack(await receive_exactly(self.sock, HEADER.size))
        if length > MAX_FRAME_BYTES:
            raise RequestRefused("badRequest", "a frame is too long")
        return kind, await receive_exactly(self.sock, length)


async def receive_some(sock: socket.socket, limit: int) -> bytes:
    """Receive at least one byte. Raises ConnectionResetError if the peer closed the connection."""
    if data := await asyncio.get_running_loop().sock_recv(sock, min(limit, CHUNK_BYTES)):
        return data
    raise ConnectionResetError(errno.ECONNRESET, "the peer closed the connection")


async def receive_exactly(sock: socket.socket, count: int) -> bytes:
    """Receive `count` bytes. Raises ConnectionResetError."""
    data = b""
    while len(data) < count:
        data += await receive_some(sock, count - len(data))
    return data
