"""A server with a kubo node and a second, foreign node: public content is exchanged, private content is not."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from roost.storage.content.unixfs.cid import Cid
from tests.conformance.kubo import KuboNode, run_kubo_node
from tests.storage.storage_env import CONTENT
from tests.support.server import RunningServer, running


@dataclass
class NetworkEnv:
    server: RunningServer
    api: httpx.AsyncClient
    ours: KuboNode
    theirs: KuboNode

    async def upload(self, data: bytes, **fields: str) -> dict[str, Any]:
        answer = await self.api.post("/v3/files", data=fields, files={"file": ("a.bin", data)})
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]

    async def until_offered(self, cid: str, *, offered: bool = True) -> None:
        async with asyncio.timeout(30):
            while await self.ours.has(str(Cid.parse(cid).v1())) is not offered:
                await asyncio.sleep(0.05)

    def blocks(self) -> set[str]:
        """Return the multihashes of all blocks in our node."""
        return {path.stem for path in self.ours.repository.glob("blocks/*/*.data")}


@pytest.fixture
async def env(tmp_path: Path) -> AsyncIterator[NetworkEnv]:
    async with run_kubo_node(tmp_path / "ours", "bearer:secret") as ours, run_kubo_node(tmp_path / "theirs") as theirs:
        settings: dict[str, Any] = {"ROOST_KUBO_API": ours.url, "ROOST_KUBO_AUTH": "bearer:secret"}
        async with running(
            tmp_path / "data", ROOST_NETWORK="kubo", ROOST_EGRESS_ALLOW="127.0.0.0/8", **settings
        ) as server:
            yield NetworkEnv(server, server.client(server.key(), "api.localhost"), ours, theirs)


async def test_public_content_is_offered_while_it_is_public(env: NetworkEnv) -> None:
    first = await env.upload(CONTENT, network="public")
    folder = await env.api.post(
        "/v3/files",
        data={"network": "public"},
        files=[("file", ("f/a", b"a" * 300_000)), ("file", ("f/b", b"b"))],
    )
    await env.until_offered(first["cid"])
    await env.until_offered(folder.json()["data"]["cid"])
    await env.theirs.call_json("swarm/connect", env.ours.address)
    assert await env.theirs.cat(first["cid"]) == CONTENT
    await env.api.delete(f"/v3/files/public/{first['id']}")
    await env.until_offered(first["cid"], offered=False)


async def test_private_content_never_leaves(env: NetworkEnv) -> None:
    before = env.blocks()
    secret = await env.upload(CONTENT, network="private")
    other = env.server.client(env.server.key("other"), "api.localhost")
    await env.api.put(f"/v3/files/private/{secret['id']}", json={"name": "b"})
    wish = await other.post("/v3/files/public/pin_by_cid", json={"cid": secret["cid"], "host_nodes": []})
    assert wish.status_code == 200
    public = await env.upload(b"public", network="public")
    await env.until_offered(public["cid"])
    await env.api.delete(f"/v3/files/private/{secret['id']}")
    later = await env.upload(b"later", network="public")
    await env.until_offered(later["cid"])
    assert len(env.blocks() - before) == 2


async def test_content_of_other_peers_comes_over_bitswap(env: NetworkEnv) -> None:
    cid = await env.theirs.add(CONTENT)
    asked = await env.api.post("/psa/pins", json={"cid": cid, "origins": [env.theirs.address]})
    assert asked.status_code == 202
    assert asked.json()["delegates"] == [env.ours.address]
    async with asyncio.timeout(30):
        while (await env.api.get("/psa/pins", params={"cid": cid})).json()["count"] == 0:
            await asyncio.sleep(0.05)
    (file,) = (await env.api.get("/v3/files/public", params={"cid": cid})).json()["data"]["files"]
    assert file["size"] == len(CONTENT)
    await env.until_offered(cid)  # a public file, so it is announced too
