"""A stand-in for somebody's trustless gateway, and for a kubo node's RPC as far as it gives CARs (`dag/export`).

It misbehaves when it is told to.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum, auto

from roost.storage.unixfs import car, varint
from roost.storage.unixfs.cid import RAW, Cid


class Manner(Enum):
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
    """`asked` are the paths of requests, in their order; `left` is set when somebody had enough before the end."""

    cars: Mapping[str, bytes]
    manner: Manner = Manner.HONEST
    port: int = 0
    asked: list[str] = field(default_factory=list[str])
    left: asyncio.Event = field(default_factory=asyncio.Event)

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
            self.asked.append(target)
            async with aclosing(self._answer(target)) as parts:
                async for part in parts:
                    writer.write(part)
                    await writer.drain()
            if self.manner is Manner.SILENT:
                await reader.read()  # until the other side has enough
                self.left.set()
        except (asyncio.IncompleteReadError, ConnectionError):
            self.left.set()
        finally:
            writer.close()

    async def _answer(self, target: str) -> AsyncGenerator[bytes]:
        data = self.cars.get(_wanted(target))
        if data is None:
            yield _head("404 Not Found", "text/plain", 0)
            return
        middle = len(data) // 2
        match self.manner:
            case Manner.WEB_PAGE:
                yield _head("200 OK", "text/html", 4) + b"page"
            case Manner.REDIRECTS:
                yield _head("301 Moved Permanently", "text/html", 0, "Location: http://127.0.0.1:9/\r\n")
            case Manner.FAILS:
                yield _head("502 Bad Gateway", "text/plain", 0)
            case Manner.CUT_OFF | Manner.SILENT:
                yield _head("200 OK", _CAR, len(data)) + data[:middle]
            case Manner.FLIPS_A_BIT:
                flipped = bytes((data[middle] ^ 1,))
                yield _head("200 OK", _CAR, len(data)) + data[:middle] + flipped + data[middle + 1 :]
            case Manner.DRIPS:
                yield _head("200 OK", _CAR, len(data)) + data[:middle]
                for at in range(middle, len(data)):
                    yield data[at : at + 1]
                    await asyncio.sleep(0.02)
            case Manner.ENDLESS:
                yield _head("200 OK", _CAR, 2**60) + data
                async for piece in _blocks_without_end():
                    yield piece
            case Manner.HUGE_BLOCK:
                root = car.encode_header([Cid.parse(_wanted(target))])
                yield _head("200 OK", _CAR, 2**60) + root + varint.encode_varint(2**40)
                async for piece in _blocks_without_end():
                    yield piece
            case Manner.HONEST:
                yield _head("200 OK", _CAR, len(data)) + data


@asynccontextmanager
async def gateway(cars: Mapping[str, bytes], manner: Manner = Manner.HONEST) -> AsyncIterator[CarServer]:
    made = CarServer(cars, manner)
    async with await asyncio.start_server(made.serve, "127.0.0.1", 0) as server:
        made.port = server.sockets[0].getsockname()[1]
        yield made


_CAR = "application/vnd.ipld.car; version=1; order=dfs; dups=n"


def _wanted(target: str) -> str:
    """Which CID's CAR is asked for, if it is."""
    path, _, query = target.partition("?")
    if query == "format=car&dag-scope=all":
        return path.removeprefix("/ipfs/")
    if path == "/api/v0/dag/export":
        return query.removeprefix("arg=").partition("&")[0]
    return ""


async def _blocks_without_end() -> AsyncIterator[bytes]:
    """True blocks that nobody asked for."""
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
