"""Real kubo nodes for tests, each a process with a replacement of kubo's RPC (see `kubo_node`)."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

_ROOT = Path(__file__).parents[2]


@dataclass
class KuboNode:
    url: str
    address: str
    """Multiaddr at which other nodes can connect."""
    credential: str
    """In the form of kubo's settings; `call` only supports bearer tokens."""
    repository: Path

    async def call(self, verb: str, arg: str = "", data: bytes | None = None) -> httpx2.Response:
        """Call a verb like another client than Roost."""
        headers = {"Authorization": f"Bearer {self.credential.removeprefix('bearer:') or 'none'}"}
        async with httpx2.AsyncClient(timeout=30, trust_env=False, headers=headers) as client:
            return await client.post(f"{self.url}/api/v0/{verb}", params={"arg": arg}, content=data)

    async def add(self, data: bytes) -> str:
        return (await self.call_json("add", data=data))["Hash"]

    async def cat(self, cid: str) -> bytes:
        answer = await self.call("cat", cid)
        assert answer.is_success, answer.text
        return answer.content

    async def call_json(self, verb: str, arg: str = "", data: bytes | None = None) -> dict[str, Any]:
        answer = await self.call(verb, arg, data)
        assert answer.is_success, answer.text
        return answer.json()

    async def has(self, cid: str) -> bool:
        return (await self.call("pin/ls", cid)).is_success


@asynccontextmanager
async def run_kubo_node(folder: Path, credential: str = "") -> AsyncIterator[KuboNode]:
    folder.mkdir(parents=True)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.conformance.kubo_node", str(folder / "repository"), credential),
        cwd=_ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout
        async with asyncio.timeout(60):
            node = json.loads(await process.stdout.readline())
        yield KuboNode(f"http://127.0.0.1:{node['port']}", node["Addresses"][0], credential, folder / "repository")
    finally:
        assert process.stdin
        process.stdin.close()
        await process.wait()
