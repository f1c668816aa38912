"""A stub of a trustless gateway and of a kubo node's RPC for CARs (`dag/export`), with configurable faults."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum, auto

from roost.storage.content.unixfs import car, varint
from roost.storage.content.unixfs.cid import RAW, Cid


class Behavior(Enum):
    HONEST = auto()
    CUT_OFF = auto()
    FLIPS_A_BIT = auto()
    WEB_PAGE = auto()
    REDIRECTS = auto()
    FAILS = auto()
    SILENT = auto()
    DRIPS = auto()
    ENDLESS = auto()
    HUGE_BLOCK = auto()


@dataclass
class CarServer:
    """requests: their paths, in order. disconnected: set when a client closes the connection before the end."""

    cars: Mapping[str, bytes]
    behavior: Behavior = Behavior.HONEST
    port: int = 0
    requests: list[str] = field(default_factory=list[str])
    disconnected: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def host(self) -> str:
        return f"/ip4/127.0.0.1/tcp/{self.port}/http"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            target = head.split(" ", 2)[1]
            self.requests.append(target)
            async with aclosing(self._answer(target)) as parts:
                async for part in parts:
                    writer.write(part)
                    await writer.drain()
            if self.behavior is Behavior.SILENT:
                await reader.read()  # until the client closes the connection
                self.disconnected.set()
        except (asyncio.IncompleteReadError, ConnectionError):
            self.disconnected.set()
        finally:
            writer.close()

    async def _answer(self, target: str) -> AsyncGenerator[bytes]:
        data = self.cars.get(_requested_cid(target))
        if data is None:
            yield _head("404 Not Found", "text/plain", 0)
            return
        middle = len(data) // 2
        match self.behavior:
            case Behavior.WEB_PAGE:
                yield _head("200 OK", "text/html", 4) + b"page"
            case Behavior.REDIRECTS:
                yield _head("301 Moved Permanently", "text/html", 0, "Location: http://127.0.0.1:9/\r\n")
            case Behavior.FAILS:
                yield _head("502 Bad Gateway", "text/plain", 0)
            case Behavior.CUT_OFF | Behavior.SILENT:
                yield _head("200 OK", _CAR, len(data)) + data[:middle]
            case Behavior.FLIPS_A_BIT:
                flipped = bytes((data[middle] ^ 1,))
                yield _head("200 OK", _CAR, len(data)) + data[:middle] + flipped + data[middle + 1 :]
            case Behavior.DRIPS:
                yield _head("200 OK", _CAR, len(data)) + data[:middle]
                for at in range(middle, len(data)):
                    yield data[at : at + 1]
                    await asyncio.sleep(0.02)
            case Behavior.ENDLESS:
                yield _head("200 OK", _CAR, 2**60) + data
                async for piece in _endless_blocks():
                    yield piece
            case Behavior.HUGE_BLOCK:
                root = car.encode_header([Cid.parse(_requested_cid(target))])
                yield _head("200 OK", _CAR, 2**60) + root + varint.encode_varint(2**40)
                async for piece in _endless_blocks():
                    yield piece
            case Behavior.HONEST:
                yield _head("200 OK", _CAR, len(data)) + data


@asynccontextmanager
async def serve_cars(cars: Mapping[str, bytes], behavior: Behavior = Behavior.HONEST) -> AsyncIterator[CarServer]:
    stub = CarServer(cars, behavior)
    async with await asyncio.start_server(stub.serve, "127.0.0.1", 0) as server:
        stub.port = server.sockets[0].getsockname()[1]
        yield stub


_CAR = "application/vnd.ipld.car; version=1; order=dfs; dups=n"


def _requested_cid(target: str) -> str:
    """Return the CID of a request for a CAR, else an empty text."""
    path, _, query = target.partition("?")
    if query == "format=car&dag-scope=all":
        return path.removeprefix("/ipfs/")
    if path == "/api/v0/dag/export":
        return query.removeprefix("arg=").partition("&")[0]
    return ""


async def _endless_blocks() -> AsyncIterator[bytes]:
    """Yield valid blocks that are not part of the content."""
    number = 0
    while True:
        block = number.to_bytes(65_536, "big")
        cid = Cid.for_block(RAW, block)
        yield car.encode_frame(cid, len(block)) + block
        number += 1
        await asyncio.sleep(0)


def _head(status: str, kind: str, length: int, more: str = "") -> bytes:
    fields = f"Content-Type: {kind}\r\nContent-Length: {length}\r\n{more}Connection: close\r\n"
    return f"HTTP/1.1 {status}\r\n{fields}\r\n".encode()
