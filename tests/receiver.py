"""A receiver of webhooks: an HTTP server on loopback that keeps what comes and answers as it is told."""

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
    """`status` is the answer: None says nothing for ever. `more` stands in the head, `tail` after it, and then the
    connection is closed, but for `endless`, which says more, and `hold`, which does not.
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
        """The messages, when there are so many."""
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
