"""A client that believes no gateway: Helia, unmodified, asks for blocks and hashes each of them itself."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from roost.storage.content.unixfs.profile import V1
from tests.support import node
from tests.support.server import RunningServer, running

FOLDER = Path(__file__).parent / "verifying"
NAMES = Path(__file__).parent / "names.mjs"
BIG = hashlib.shake_128(b"verified").digest(3_000_001)
MANY = {f"{number}{'-' * 200}": b"%d" % number for number in range(1500)}
ONE = [*MANY][700]
CHUNK = V1.chunk
SHORT, LONG = 2.0, 30.0  # seconds until nothing more is waited for


@dataclass
class VerifyingClient:
    server: RunningServer
    folder: Path
    packages: Path
    gateway: str

    async def fetched(self, *wanted: tuple[str, str, float], port: int | None = None) -> Any:
        """Of each CID and path, how many bytes it took in so many seconds, their SHA-256, and whether that was all."""
        environment = {
            "ROOST_GATEWAY": f"http://{self.gateway}:{port or self.server.port}",
            "ROOST_WANTED": json.dumps(wanted),
        }
        options = ("--no-warnings", "--import", str(NAMES), "--import", "./polyfill.mjs")
        return json.loads(await node.run(FOLDER / "fetch.mjs", self.folder, self.packages, environment, *options))

    async def upload(self, **files: bytes) -> str:
        """The CID of a public folder."""
        form = [("file", (f"folder/{name}", data)) for name, data in files.items()]
        client = self.server.client(self.server.key(), "uploads.localhost")
        answer = await client.post("/v3/files", data={"network": "public"}, files=form)
        return answer.json()["data"]["cid"]


@pytest.fixture
async def helia(tmp_path: Path) -> AsyncIterator[VerifyingClient]:
    packages = node.installed(FOLDER)
    async with running(tmp_path / "data") as server:
        listed = await server.client(server.key(), "api.localhost").get("/v3/gateways")
        name = listed.json()["data"]["rows"][0]["domain"]
        yield VerifyingClient(server, tmp_path / "client", packages, f"{name}.gateways.localhost")


def some(data: bytes, *, whole: bool = True) -> list[Any]:
    return [len(data), hashlib.sha256(data).hexdigest(), whole]


NOTHING = some(b"", whole=False)


async def test_it_gets_what_was_uploaded(helia: VerifyingClient) -> None:
    root = await helia.upload(**{"sub/below/big": BIG, "a.txt": b"hello"})
    sharded = await helia.upload(**MANY)
    found = await helia.fetched(
        *((root, name, LONG) for name in ("sub/below/big", "a.txt", "none")),
        *((sharded, name, LONG) for name in (ONE, "none")),
    )
    assert found == [some(BIG), some(b"hello"), NOTHING, some(MANY[ONE]), NOTHING]


async def test_it_gets_no_bit_of_a_damaged_block(helia: VerifyingClient, tmp_path: Path) -> None:
    """What is before it, and what else is in the pack, is not lost."""
    root = await helia.upload(big=BIG, small=b"hello")
    (pack,) = [path for path in (tmp_path / "data" / "blobs").rglob("*") if path.is_file()]
    data = bytearray(pack.read_bytes())
    data[data.index(BIG[:100]) + 3 * CHUNK + 5] ^= 1
    pack.chmod(0o600)
    pack.write_bytes(data)
    big, small = await helia.fetched((root, "big", SHORT), (root, "small", LONG))
    assert big[0] <= 3 * CHUNK
    assert big == some(BIG[: big[0]], whole=False)
    assert small == some(b"hello")


async def test_it_does_look(helia: VerifyingClient) -> None:
    """The same client takes nothing from a gateway that changes one bit of a block on its way."""
    root = await helia.upload(big=BIG, small=b"hello")
    async with serve_corrupt_blocks(helia.gateway, helia.server.port) as port:
        found = await helia.fetched((root, "big", SHORT), (root, "small", LONG), port=port)
    assert found == [NOTHING, some(b"hello")]


@asynccontextmanager
async def serve_corrupt_blocks(gateway: str, port: int) -> AsyncIterator[int]:
    """A gateway that hands on another one's blocks, the large ones with a bit flipped."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        target = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].decode()
        got = await client.get(f"http://127.0.0.1:{port}{target}", headers={"Host": f"{gateway}:{port}"})
        body = bytearray(got.content)
        body[-1] ^= len(body) > 10_000
        head = f"HTTP/1.1 {got.status_code} OK\r\nContent-Type: {got.headers['content-type']}\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()

    async with httpx.AsyncClient(trust_env=False) as client:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with server:
            yield server.sockets[0].getsockname()[1]
