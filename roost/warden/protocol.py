"""Protocol of a connection: a request line, a reply line, and frames for some operations, all of bounded length."""

from __future__ import annotations

import errno

from .event_loop import CoroutineTask
from .light_imports import format_json, parse_json, socket, struct, suppress
from .streams import CHUNK_BYTES, receive_chunk, send_all
from .waiting import TaskLock, TimeLimit, wait_until_done

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable
    from typing import Any

    from .light_imports import Socket

    Json = dict[str, Any]

MAX_FRAME_BYTES = MAX_REQUEST_BYTES = 1 << 20
HEADER = struct.Struct("!cI")
DRAIN_SECONDS = 10.0

ERRNO_CODES = {
    **dict.fromkeys((errno.ENOENT, errno.ENOTDIR), "fileMissing"),
    **dict.fromkeys((errno.EISDIR, errno.ENXIO), "notAFile"),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENAMETOOLONG, errno.EROFS), "pathRefused"),
    errno.EFBIG: "fileTooLarge",
    errno.ENOTEMPTY: "folderNotEmpty",
    errno.ENOSPC: "diskFull",
    errno.EDQUOT: "diskFull",
    errno.EAGAIN: "busy",  # a process holds a lease on the file
}


class RequestRefused(Exception):  # noqa: N818 - the protocol's term
    """The request is answered with an error."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def error_code(problem: Exception) -> str:
    """Return the protocol's code of an error."""
    if isinstance(problem, RequestRefused):
        return problem.code
    if isinstance(problem, OSError):
        return ERRNO_CODES.get(problem.errno or 0, "failed")
    return "badRequest"


class Connection:
    """Connection of the server; frames have a type (`d` data, `o`/`e` output, `i` input, `x` end), length and data."""

    def __init__(self, sock: Socket) -> None:
        self.sock = sock
        self._replied, self._send_lock = False, TaskLock()

    async def read_request(self) -> Json:
        line = b""
        while not line.endswith(b"\n"):
            data = await receive_chunk(self.sock, CHUNK_BYTES)
            line += data
            if not data or len(line) > MAX_REQUEST_BYTES:
                raise RequestRefused("badRequest", "no request line")
        return dict(parse_json(line))

    async def send_reply(self, **fields: Any) -> None:
        self._replied = True
        await send_all(self.sock, format_json({"ok": True, **fields}).encode() + b"\n")

    async def send_frame(self, kind: bytes, data: bytes | memoryview) -> None:
        async with self._send_lock:
            await send_all(self.sock, HEADER.pack(kind, len(data)), data)

    async def send_end(self, **fields: Any) -> None:
        await self.send_frame(b"x", format_json({"ok": True, **fields}).encode())

    async def send_problem(self, problem: Exception) -> None:
        """Answer with an error; after the reply, also receive what the client still sends, until it got the answer."""
        text = str(problem) if isinstance(problem, RequestRefused) else getattr(problem, "strerror", None)
        fields = {"ok": False, "error": error_code(problem), "message": text or repr(problem)}
        if self._replied:
            await self.send_end(**fields)
            self.sock.shutdown(socket.SHUT_WR)
            with suppress(TimeoutError), TimeLimit(DRAIN_SECONDS):
                while await receive_chunk(self.sock, CHUNK_BYTES):
                    continue
        else:
            await self.send_reply(**fields)

    async def send_items(self, items: Iterable[object]) -> None:
        """Send data frames with JSON arrays of bounded length."""
        batch: list[str] = []
        size = 0
        for item in items:
            batch.append(format_json(item))
            size += len(batch[-1])
            if size > CHUNK_BYTES:
                await self.send_frame(b"d", f"[{','.join(batch)}]".encode())
                batch, size = [], 0
        if batch:
            await self.send_frame(b"d", f"[{','.join(batch)}]".encode())

    async def serve_until_disconnect(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine until it ends, or the client disconnects or sends more. Raises its errors."""
        task, gone = CoroutineTask(coroutine), CoroutineTask(receive_chunk(self.sock, 1))
        try:
            await wait_until_done(task, gone, first=True)
            if task.done():
                task.result()
        finally:
            for other in (task, gone):
                other.cancel()
            await wait_until_done(task, gone)  # the socket is closed next

    async def read_frame(self) -> tuple[bytes, bytes]:
        """Read the next frame of the client. Raises ConnectionError at the end."""
        kind, length = HEADER.unpack(await receive_exactly(self.sock, HEADER.size))
        if length > MAX_FRAME_BYTES:
            raise RequestRefused("badRequest", "a frame is too long")
        return kind, await receive_exactly(self.sock, length)


async def receive_some(sock: Socket, limit: int) -> bytes:
    """Receive at least one byte. Raises ConnectionResetError if the peer closed the connection."""
    if data := await receive_chunk(sock, min(limit, CHUNK_BYTES)):
        return data
    raise ConnectionResetError(errno.ECONNRESET, "the peer closed the connection")


async def receive_exactly(sock: Socket, count: int) -> bytes:
    """Receive `count` bytes. Raises ConnectionResetError."""
    parts: list[bytes] = []
    while count:
        parts.append(await receive_some(sock, count))
        count -= len(parts[-1])
    return b"".join(parts)
