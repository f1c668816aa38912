"""Older SDKs, unmodified: one with paths that name no network, and one that knows a single address, led here by TLS."""

import asyncio
import re
import shutil
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.platforms.tls import Authority
from tests.support import node
from tests.support.server import RunningServer, running

FOLDER = Path(__file__).parent
ONLY = "api.pinata.cloud"
_HEAD = 64 * 1024


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[RunningServer]:
    async with running(tmp_path / "data") as made:
        yield made


async def run(server: RunningServer, journey: str, at: Path, *options: str, **environment: str) -> str:
    packages = node.installed(FOLDER)
    at.mkdir()
    shutil.copy(FOLDER.parent / "names.mjs", at)
    everybody = {"ROOST_PORT": str(server.port), "ROOST_KEY": server.key(), **environment}
    return await node.run(FOLDER / f"{journey}.mjs", at, packages, everybody, "--no-warnings", *options)


async def test_paths_without_a_network(server: RunningServer, tmp_path: Path) -> None:
    rows = (await server.client(server.key(), "api.localhost").get("/v3/ipfs/gateways")).json()["data"]["rows"]
    told = await run(
        server, "private", tmp_path / "journey", "--import", "./names.mjs", ROOST_GATEWAY=rows[0]["domain"]
    )
    assert told == "done\n"


async def test_a_client_that_knows_one_address(server: RunningServer, tmp_path: Path) -> None:
    minted = await server.client(server.key(), "api.localhost").post(
        "/v3/pinata/keys", json={"keyName": "old", "permissions": {"admin": True}}
    )
    authority = Authority("our own")
    trusted = tmp_path / "authority.pem"
    trusted.write_bytes(authority.certificate)
    async with serve_tls_proxy(authority.server(ONLY), server.port) as port:
        told = await run(
            *(server, "fixed", tmp_path / "journey", "--import", "./override.mjs"),
            NODE_EXTRA_CA_CERTS=str(trusted),
            ROOST_TLS=str(port),
            ROOST_HANDLE=minted.json()["pinata_api_key"],
            ROOST_SECRET=minted.json()["pinata_api_secret"],
        )
    assert told == "done\n"


@asynccontextmanager
async def serve_tls_proxy(tls: ssl.SSLContext, port: int) -> AsyncIterator[int]:
    """A proxy as stands in front of a server: it ends TLS, and asks under the server's own name."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        head = re.sub(rb"(?i)\r\n(host|connection):[^\r]*", b"", head)
        behind, ahead = await asyncio.open_connection("127.0.0.1", port)
        ahead.write(head[:-2] + f"Host: api.localhost:{port}\r\nConnection: close\r\n\r\n".encode())
        sending = asyncio.create_task(_pump(reader, ahead))
        await _pump(behind, writer)
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        for one in (ahead, writer):
            one.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls, limit=_HEAD)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while piece := await source.read(_HEAD):
        sink.write(piece)
        await sink.drain()
