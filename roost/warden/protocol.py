"""One connection of the server: a request line, a reply line, then perhaps frames. Refuses what is too long."""

import asyncio
import errno
import json
import socket
import struct
from collections.abc import Iterable
from typing import Any

CHUNK = 256 * 1024
FRAME = REQUEST = 1 << 20
HEADER = struct.Struct("!cI")

Json = dict[str, Any]


class RequestRefused(Exception):  # noqa: N818 - the protocol's word
    """A request that gets an error for an answer."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Connection:
    """Frames are a type byte, a length of four bytes and data: `d` data, `o` and `e` output, `i` input, `x` the end."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock, self._loop = sock, asyncio.get_running_loop()
        self._replied, self._turn = False, asyncio.Lock()

    async def request(self) -> Json:
        line = b""
        while not line.endswith(b"\n"):
            data = await self._loop.sock_recv(self.sock, CHUNK)
            line += data
            if not data or len(line) > REQUEST:
                raise RequestRefused("badRequest", "no request line")
        return dict(json.loads(line))

    async def reply(self, **fields: Any) -> None:
        self._replied = True
        await self._loop.sock_sendall(self.sock, json.dumps({"ok": True, **fields}).encode() + b"\n")

    async def frame(self, kind: bytes, data: bytes) -> None:
        async with self._turn:
            await self._loop.sock_sendall(self.sock, HEADER.pack(kind, len(data)) + data)

    async def finish(self, **fields: Any) -> None:
        await self.frame(b"x", json.dumps({"ok": True, **fields}).encode())

    async def fail(self, code: str, message: str) -> None:
        say = self.finish if self._replied else self.reply
        await say(ok=False, error=code, message=message)

    async def items(self, items: Iterable[object]) -> None:
        """Data frames that hold JSON arrays of bounded length."""
        batch: list[str] = []
        size = 0
        for item in items:
            batch.append(json.dumps(item))
            size += len(batch[-1])
            if size > CHUNK:
                await self.frame(b"d", f"[{','.join(batch)}]".encode())
                batch, size = [], 0
        if batch:
            await self.frame(b"d", f"[{','.join(batch)}]".encode())

    async def take(self) -> tuple[bytes, bytes]:
        """The next frame of the client. Raises ConnectionError at the end."""
        kind, length = HEADER.unpack(await exactly(self.sock, HEADER.size))
        if length > FRAME:
            raise RequestRefused("badRequest", "a frame is too long")
        return kind, await exactly(self.sock, length)


async def some(sock: socket.socket, most: int) -> bytes:
    """At least one byte. Raises ConnectionResetError when the other side has ended."""
    if data := await asyncio.get_running_loop().sock_recv(sock, min(most, CHUNK)):
        return data
    raise ConnectionResetError(errno.ECONNRESET, "the other side went away")


async def exactly(sock: socket.socket, count: int) -> bytes:
    """Raises as `some`."""
    data = b""
    while len(data) < count:
        data += await some(sock, count - len(data))
    return data
