"""HTTP/1.1 on loopback with connections that a test can break, and a record of all requests."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import parse_qs, unquote, urlsplit


@dataclass
class Request:
    """A request; `user` is filled in after authentication, `status` with the answer."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes
    head: bytes = b""
    user: str = ""
    groups: tuple[str, ...] = ()
    status: int = 0

    @property
    def agent(self) -> str:
        """The user agent."""
        return self.headers.get("user-agent", "")

    def first(self, name: str, default: str = "") -> str:
        """Return the first value of a query parameter."""
        return self.query.get(name, [default])[0]

    def flag(self, name: str) -> bool:
        return self.first(name).lower() in {"1", "true"}


@dataclass
class Response:
    status: int
    body: bytes
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict[str, str])
    warnings: list[str] = field(default_factory=list[str])


class Dropped(ConnectionError):  # noqa: N818 - what it is
    """A fault has broken the connection."""


@dataclass
class Connection:
    """The connection of a request, for handlers that stream their answer."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    budget: int | None = None
    """Bytes until a fault breaks it."""

    async def send(self, data: bytes) -> None:
        """Send bytes. Raises Dropped when a fault breaks the connection, after the bytes that it lets through."""
        if self.budget is not None:
            if len(data) >= self.budget:
                self.writer.write(data[: self.budget])
                with suppress(ConnectionError):
                    await self.writer.drain()
                self.writer.transport.close()
                raise Dropped
            self.budget -= len(data)
        self.writer.write(data)
        await self.writer.drain()

    async def start_stream(self) -> None:
        """Send the head of a chunked answer."""
        head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        await self.send(head.encode())

    async def send_chunk(self, data: bytes) -> None:
        await self.send(b"%x\r\n%s\r\n" % (len(data), data))

    async def end_stream(self) -> None:
        await self.send(b"0\r\n\r\n")


@dataclass
class Fault:
    """What goes wrong with the next requests that `matches` selects: a delay, an error, or a broken connection.

    It ends after `count` requests; with a negative count it stays until a test removes it from `HttpServer.faults`.
    """

    count: int = 1
    status: int = 0
    body: bytes = b"Too many requests, please try again later.\n"
    content_type: str = "text/plain; charset=utf-8"
    retry_after: int | None = None
    delay: float = 0
    drop_after: int | None = None
    """Break the connection after that many bytes of the answer."""
    matches: Callable[[Request], bool] = lambda _: True


Handler = Callable[[Request, Connection], Awaitable[Response | None]]


class HttpServer:
    """Serves one handler, which answers or, with None, has streamed its answer on the connection.

    A test adds to `faults`, and reads and clears `requests`.
    """

    def __init__(self, handler: Handler, tls: ssl.SSLContext | None = None) -> None:
        self.faults: list[Fault] = []
        self.requests: list[Request] = []
        self.port = 0
        self._handler, self._tls = handler, tls
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Listen, on the same port as before after a stop."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port, ssl=self._tls, limit=1 << 20)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """End all connections and refuse new ones."""
        if self._server:
            self._server.close()
        await self.drop_connections()

    async def drop_connections(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def add_fault(self, fault: Fault) -> Fault:
        """Let something go wrong with the next requests; the fault ends after its count."""
        self.faults.append(fault)
        return fault

    def throttle(self, count: int = 1, retry_after: int = 1) -> Fault:
        """Refuse the next requests with 429, as priority and fairness does."""
        return self.add_fault(Fault(count, 429, retry_after=retry_after))

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while request := await _read_request(reader):
                if not await self._answer(request, Connection(reader, writer)):
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.transport.abort() if writer.transport.get_write_buffer_size() else writer.close()

    async def _answer(self, request: Request, connection: Connection) -> bool:
        """Return whether the connection goes on."""
        self.requests.append(request)
        fault = next((one for one in self.faults if one.matches(request)), None)
        if fault:
            fault.count -= 1
            if not fault.count:
                self.faults.remove(fault)
            connection.budget = fault.drop_after
            await asyncio.sleep(fault.delay)
            if fault.drop_after == 0:
                return False
            if fault.status:
                headers = {} if fault.retry_after is None else {"Retry-After": str(fault.retry_after)}
                await _send(connection, request, Response(fault.status, fault.body, fault.content_type, headers))
                return True
        response = await self._handler(request, connection)
        if response is None:
            return request.status == 200
        await _send(connection, request, response)
        return request.headers.get("connection", "").lower() != "close"


async def _send(connection: Connection, request: Request, response: Response) -> None:
    request.status = response.status
    lines = [f"HTTP/1.1 {response.status} {HTTPStatus(response.status).phrase}"]
    lines += [f"Content-Type: {response.content_type}", f"Content-Length: {len(response.body)}"]
    lines += [f"{name}: {value}" for name, value in response.headers.items()]
    quoted = (text.replace("\\", "\\\\").replace('"', '\\"') for text in response.warnings)
    lines += [f'Warning: 299 - "{text}"' for text in quoted]
    await connection.send("\r\n".join([*lines, "Cache-Control: no-cache, private", "\r\n"]).encode() + response.body)


async def _read_request(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ")
    headers = {
        name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)
    }
    if headers.get("transfer-encoding", "").lower() == "chunked":
        body = await _read_chunks(reader)
    else:
        body = await reader.readexactly(int(headers.get("content-length", "0")))
    parts = urlsplit(target)
    query = parse_qs(parts.query, keep_blank_values=True)
    return Request(method, unquote(parts.path), query, headers, body, head)


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    found = bytearray()
    while size := int((await reader.readline()).split(b";")[0], 16):
        found += await reader.readexactly(size)
        await reader.readexactly(2)
    await reader.readline()
    return bytes(found)
