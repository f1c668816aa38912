"""What a server keeps its rows and blobs in: SQLite and a folder, or PostgreSQL and a bucket."""

import asyncio
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from roost.drivers.blob import object_store
from tests.conformance import s3_server

LOCAL, SERVICES = "local", "services"


@dataclass(frozen=True)
class Backing:
    """`interrupt_blobs` makes the blob store unavailable within a block."""

    folder: Path
    interrupt_blobs: Callable[[], AbstractAsyncContextManager[None]]
    environment: Mapping[str, Any] = field(default_factory=dict[str, Any])


def local_backing(folder: Path) -> Backing:
    return Backing(folder, partial(_hide_folder, folder / "blobs"))


@asynccontextmanager
async def service_backing(folder: Path, database_url: str, s3_address: str) -> AsyncGenerator[Backing]:
    forwarder = _Forwarder(s3_address)
    async with forwarder.listen():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(object_store, "_RETRIES", {"max_retries": 0})
            s3_server.set_environment(patch, forwarder.address)
            bucket = f"backing-{uuid.uuid4().hex}"
            s3_server.create_client(s3_address).create_bucket(Bucket=bucket)
            environment = {"ROOST_DATABASE_URL": database_url, "ROOST_BLOBS": f"s3://{bucket}"}
            yield Backing(folder, forwarder.interrupt, environment)


@asynccontextmanager
async def _hide_folder(folder: Path) -> AsyncGenerator[None]:
    away = folder.rename(folder.with_name("away"))
    folder.touch()
    try:
        yield
    finally:
        folder.unlink()
        away.rename(folder)


class _Forwarder:
    """A port in front of a service, which refuses connections while it is interrupted."""

    def __init__(self, target: str) -> None:
        self._target = urlsplit(target)
        self._writers = set[asyncio.StreamWriter]()
        self._port = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @asynccontextmanager
    async def listen(self) -> AsyncGenerator[None]:
        await self._open()
        try:
            yield
        finally:
            self._close()

    @asynccontextmanager
    async def interrupt(self) -> AsyncGenerator[None]:
        self._close()
        try:
            yield
        finally:
            await self._open()

    async def _open(self) -> None:
        self._server = await asyncio.start_server(self._forward, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    def _close(self) -> None:
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream, onward = await asyncio.open_connection(self._target.hostname, self._target.port)
        self._writers |= {writer, onward}
        await asyncio.gather(_copy(reader, onward), _copy(upstream, writer))
        self._writers -= {writer, onward}


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()
