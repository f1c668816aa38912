"""One HTTP request on a byte stream, and its response; for the gateways of agents, which are reached by streams alone.

A gateway is hostile: the parser (llhttp, strict) rejects ambiguous responses, and heads are limited. The time is up to
the caller, and so is the size of a body that it reads in parts. The connection is closed after one request.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, Mapping
from contextlib import asynccontextmanager

import httptools

HOP_BY_HOP = frozenset(
    b"connection http2-settings keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer "
    b"transfer-encoding upgrade".split()
)
"""Headers that belong to one connection and are never forwarded (RFC 9110, 7.6.1), besides those that it names."""
_BLOCK = 65536
_MAX_HEAD = 65536


class InvalidResponseError(Exception):
    """The response is not HTTP, or two readers could understand it differently."""


class ResponseTooLongError(InvalidResponseError):
    """The body is longer than its reader takes."""


class HttpResponse:
    """A response that is being received. Methods raise InvalidResponseError, OSError, and without a head EOFError."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._parser = httptools.HttpResponseParser(self)
        self._chunks: deque[bytes] = deque()
        self._has_head = self._is_complete = False
        self.status = 0

    async def read_head(self) -> None:
        """Receive the head; informational responses before it are skipped."""
        received = 0
        while not self._has_head:
            received += await self._receive()
            if not self._has_head and received > _MAX_HEAD:
                raise InvalidResponseError

    async def read(self) -> bytes:
        """Return the next part of the body, empty at its end."""
        while not self._chunks and not self._is_complete:
            await self._receive()
        return self._chunks.popleft() if self._chunks else b""

    async def read_all(self, limit: int) -> bytes:
        """Return the whole body. Raises ResponseTooLongError beyond `limit` bytes."""
        content = bytearray()
        while part := await self.read():
            content += part
            if len(content) > limit:
                raise ResponseTooLongError
        return bytes(content)

    async def _receive(self) -> int:
        data = await self._reader.read(_BLOCK)
        if not data:
            if not self._has_head:
                raise EOFError
            self._is_complete = True  # a body without a length ends with its connection
            return 0
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):  # no request here asks for another protocol
            raise InvalidResponseError from None
        return len(data)

    # Called by the parser

    def on_headers_complete(self) -> None:
        if not self._is_complete:  # what follows a whole response is no part of it
            self.status = self._parser.get_status_code()
            self._has_head = self.status >= 200

    def on_body(self, data: bytes) -> None:
        if not self._is_complete:
            self._chunks.append(data)

    def on_message_complete(self) -> None:
        self._is_complete = self._has_head


@asynccontextmanager
async def send_request(
    stream: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    request: str,
    headers: Mapping[str, str],
    content: bytes | AsyncIterable[bytes] = b"",
    head_seconds: float | None = None,
) -> AsyncGenerator[HttpResponse, None]:
    """Send a request with a request line such as `GET /v1/models HTTP/1.1`, and receive the head of its response.

    Content in parts is sent in chunks, which `headers` have to say, and only as far as the other end reads it. Raises
    the errors of `HttpResponse` and of the content, and TimeoutError if the head takes longer than `head_seconds`.
    """
    reader, writer = stream
    lines = [request, "Host: 127.0.0.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    head = "\r\n".join(lines).encode()
    try:
        if isinstance(content, bytes):
            writer.write(head + content)
        else:
            writer.write(head)
            await _send_chunks(writer, content)
        response = HttpResponse(reader)
        async with asyncio.timeout(head_seconds):
            await response.read_head()
        yield response
    finally:
        writer.close()


async def _send_chunks(writer: asyncio.StreamWriter, content: AsyncIterable[bytes]) -> None:
    async for part in content:
        writer.write(b"%x\r\n%s\r\n" % (len(part), part))
        try:
            await writer.drain()
        except ConnectionError:  # an early response says why
            return
    writer.write(b"0\r\n\r\n")
