"""One HTTP request to an agent's gateway, and its response as a stream of bytes.

A gateway is hostile: the parser (llhttp, strict) rejects ambiguous responses, heads and waiting times are limited, and
the size of the body is up to the reader. The connection is closed after one request.
"""

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httptools

from roost.agents.chat.errors import AgentUnreachable, AnswerFailed
from roost.core.sensitive import Sensitive
from roost.drivers.runtime.contract import Stream

_BLOCK = 65536
_MAX_HEAD = 65536


class AnswerResponse:
    """A response that is being received."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._parser = httptools.HttpResponseParser(self)
        self._chunks: deque[bytes] = deque()
        self._has_head = self._is_complete = False
        self.status = 0

    async def read_head(self, seconds: float) -> None:
        """Receive the head. Raises AgentUnreachable, AnswerFailed."""
        received = 0
        try:
            async with asyncio.timeout(seconds):
                while not self._has_head:
                    received += await self._receive()
                    if not self._has_head and received > _MAX_HEAD:
                        raise AnswerFailed
        except TimeoutError:
            raise AgentUnreachable from None

    async def read(self) -> bytes:
        """Return the next part of the body, empty at its end. Raises AgentUnreachable, AnswerFailed."""
        while not self._chunks and not self._is_complete:
            await self._receive()
        return self._chunks.popleft() if self._chunks else b""

    async def _receive(self) -> int:
        try:
            data = await self._reader.read(_BLOCK)
        except OSError:
            raise AgentUnreachable from None
        if not data:
            if not self._has_head:
                raise AgentUnreachable
            self._is_complete = True  # a body without a length ends with its connection
            return 0
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            raise AnswerFailed from None
        return len(data)

    # Called by the parser

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        self._has_head = self.status >= 200

    def on_body(self, data: bytes) -> None:
        self._chunks.append(data)

    def on_message_complete(self) -> None:
        self._is_complete = self._has_head


@asynccontextmanager
async def send_request(
    stream: Stream,
    request: str,
    credential: tuple[str, Sensitive[str]],
    body: Mapping[str, Any] | None,
    head_seconds: float,
) -> AsyncGenerator[AnswerResponse, None]:
    """Send a request such as `GET /v1/models`, and receive the head of its response.

    Raises AgentUnreachable, AnswerFailed.
    """
    reader, writer = stream
    content = b"" if body is None else json.dumps(body).encode()
    name, value = credential
    head = [
        f"{request} HTTP/1.1",
        "Host: 127.0.0.1",
        f"{name}: {value.reveal()}",
        "X-Forwarded-For: 192.0.0.8",  # a gateway trusts its loopback as itself (dummy of RFC 7600)
        "Connection: close",
        "Content-Type: application/json",
        f"Content-Length: {len(content)}",
    ]
    try:
        writer.write("\r\n".join([*head, "", ""]).encode("latin-1") + content)
        response = AnswerResponse(reader)
        await response.read_head(head_seconds)
        yield response
    finally:
        writer.close()
