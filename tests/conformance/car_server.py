"""A stand-in for somebody's trustless gateway: gives CARs over HTTP, and misbehaves when it is told to."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum, auto


class Manner(Enum):
    HONEST = auto()
    CUT_OFF = auto()
    FLIPS_A_BIT = auto()
    WEB_PAGE = auto()
    REDIRECTS = auto()
    FAILS = auto()
    SILENT = auto()


@dataclass
class CarServer:
    """`asked` are the paths of requests, in their order."""

    cars: Mapping[str, bytes]
    manner: Manner = Manner.HONEST
    port: int = 0
    asked: list[str] = field(default_factory=list[str])

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
            for part in self._answer(target):
                writer.write(part)
                await writer.drain()
            if self.manner is Manner.SILENT:
                await reader.read()  # until the other side has enough
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()

    def _answer(self, target: str) -> list[bytes]:
        path, _, query = target.partition("?")
        car = self.cars.get(path.removeprefix("/ipfs/"))
        if car is None or query != "format=car&dag-scope=all":
            return [_head("404 Not Found", "text/plain", 0)]
        middle = len(car) // 2
        match self.manner:
            case Manner.WEB_PAGE:
                return [_head("200 OK", "text/html", 4), b"page"]
            case Manner.REDIRECTS:
                return [_head("301 Moved Permanently", "text/html", 0, "Location: http://127.0.0.1:9/\r\n")]
            case Manner.FAILS:
                return [_head("502 Bad Gateway", "text/plain", 0)]
            case Manner.CUT_OFF | Manner.SILENT:
                return [_head("200 OK", _CAR, len(car)), car[:middle]]
            case Manner.FLIPS_A_BIT:
                flipped = bytes((car[middle] ^ 1,))
                return [_head("200 OK", _CAR, len(car)), car[:middle] + flipped + car[middle + 1 :]]
            case Manner.HONEST:
                return [_head("200 OK", _CAR, len(car)), car]


@asynccontextmanager
async def gateway(cars: Mapping[str, bytes], manner: Manner = Manner.HONEST) -> AsyncIterator[CarServer]:
    made = CarServer(cars, manner)
    async with await asyncio.start_server(made.serve, "127.0.0.1", 0) as server:
        made.port = server.sockets[0].getsockname()[1]
        yield made


_CAR = "application/vnd.ipld.car; version=1; order=dfs; dups=n"


def _head(status: str, kind: str, length: int, more: str = "") -> bytes:
    fields = f"Content-Type: {kind}\r\nContent-Length: {length}\r\n{more}Connection: close\r\n"
    return f"HTTP/1.1 {status}\r\n{fields}\r\n".encode()
