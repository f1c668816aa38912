"""A receiver of webhooks: an HTTP server on loopback that records requests and answers as configured."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Message:
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def event(self) -> str:
        return self.json["event_type"]


@dataclass
class Receiver:
    """Recorded messages, and the response to the next ones.

    `status` is the status of the response, None for no response at all. `more` is added to the head, `tail` follows it.
    Then the connection is closed, except with `endless`, which goes on sending, and `hold`, which stops.
    """

    port: int = 0
    status: int | None = 200
    more: str = ""
    tail: bytes = b""
    endless: bool = False
    hold: bool = False
    messages: list[Message] = field(default_factory=list[Message])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    async def wait(self, count: int = 1) -> list[Message]:
        """Wait for that many messages and return them."""
        async with asyncio.timeout(20):
            while len(self.messages) < count:
                await asyncio.sleep(0.005)
        return self.messages

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            self.messages.append(Message(head[0].split(" ")[1], headers, body))
            if self.status is None:
                await reader.read()
                return
            writer.write(f"HTTP/1.1 {self.status} X\r\nConnection: close\r\n{self.more}\r\n".encode() + self.tail)
            await writer.drain()
            if self.hold:
                await reader.read()
            while self.endless:
                writer.write(bytes(65_536))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()


@asynccontextmanager
async def receiving(status: int | None = 200, port: int = 0) -> AsyncIterator[Receiver]:
    made = Receiver(status=status)
    server = await asyncio.start_server(made.serve, "127.0.0.1", port)
    made.port = server.sockets[0].getsockname()[1]
    async with server:
        yield made
