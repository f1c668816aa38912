"""Flipped bits on the disk are never served; `roost scrub` reports their owners; the same upload repairs them."""

import asyncio
import hashlib
import io
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2 as httpx
import pytest
from PIL import Image

from roost.core import clock
from tests.cli.terminal import run
from tests.support.server import RunningServer, running

BIG = hashlib.shake_128(b"damage").digest(3_000_001)


@dataclass
class DamageEnv:
    server: RunningServer
    folder: Path
    api: httpx.AsyncClient
    visitor: httpx.AsyncClient
    gateway: str

    async def keep(self, content: bytes, name: str = "a.bin", network: str = "public") -> dict[str, Any]:
        form = {"data": {"network": network}, "files": {"file": (name, content)}}
        answer = await self.api.post("/v3/files", **form)
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]

    def flip(self, content: bytes, at: int) -> None:
        """Flip a bit in every object with exactly that content."""
        for path in (self.folder / "blobs").rglob("*"):
            if path.is_file() and path.read_bytes() == content:
                path.write_bytes(content[:at] + bytes((content[at] ^ 1,)) + content[at + 1 :])

    async def fetch(self, path: str, **headers: str) -> tuple[int, bytes, bool]:
        """Return the status, the received bytes, and whether the response was complete."""
        came = b""
        async with self.visitor.stream("GET", path, headers=headers) as answer:
            try:
                async for piece in answer.aiter_raw():
                    came += piece
            except httpx.RemoteProtocolError:
                return answer.status_code, came, False
        return answer.status_code, came, True

    async def link(self, cid: str) -> str:
        address = f"http://{self.gateway}.gateways.localhost/files/{cid}"
        asked = {"url": address, "date": int(clock.utc_now().timestamp()), "expires": 60, "method": "GET"}
        url = (await self.api.post("/v3/files/private/download_link", json=asked)).json()["data"]
        parts = urlsplit(url)
        return f"{parts.path}?{parts.query}"


@pytest.fixture
async def env(tmp_path: Path) -> AsyncIterator[DamageEnv]:
    folder = tmp_path / "data"
    async with running(folder) as server:
        api = server.client(server.key(), "uploads.localhost")
        rows = (await server.client(server.key(), "api.localhost").get("/v3/gateways")).json()["data"]["rows"]
        name = rows[0]["domain"]
        yield DamageEnv(server, folder, api, server.client(None, f"{name}.gateways.localhost"), name)


def picture() -> bytes:
    out = io.BytesIO()
    Image.effect_noise((300, 300), 50).save(out, "PNG")
    return out.getvalue()


async def test_no_way_out_gives_damaged_bytes(env: DamageEnv) -> None:
    big, secret, photo = await env.keep(BIG), await env.keep(BIG, network="private"), await env.keep(picture())
    link = await env.link(secret["cid"])
    (photo_pack,) = [path.read_bytes() for path in (env.folder / "blobs").rglob("*") if _is_png(path)]
    env.flip(BIG, 1_500_000)
    env.flip(photo_pack, len(photo_pack) // 2)
    begin, end = 1_400_000, 1_600_000
    ways = {
        f"/ipfs/{big['cid']}": ({}, BIG),
        f"/ipfs/{big['cid']}?": ({"Range": f"bytes={begin}-{end - 1}"}, BIG[begin:end]),
        link: ({}, BIG),
    }
    for path, (headers, content) in ways.items():
        status, came, whole = await env.fetch(path, **headers)
        assert status >= 500 or not whole, path
        assert status >= 500 or (content.startswith(came) and came != content), path
    wrong = bytes((BIG[1_500_000] ^ 1,)) + BIG[1_500_001:1_500_064]
    for query in ("format=car", "format=car&entity-bytes=1400000:1600000", "format=tar", "download=true"):
        status, came, whole = await env.fetch(f"/ipfs/{big['cid']}?{query}")
        assert status >= 400 or not whole, query
        assert wrong not in came, query
    status, came, whole = await env.fetch(f"/ipfs/{photo['cid']}?img-width=30")
    assert status >= 500 or not whole
    assert not came.startswith(b"\x89PNG")
    assert (await env.visitor.head(f"/ipfs/{big['cid']}")).status_code == 200


def _is_png(path: Path) -> bool:
    return path.is_file() and path.read_bytes().startswith(b"\x89PNG")


async def test_a_block_and_a_path_into_a_folder(env: DamageEnv) -> None:
    files = [("file", (f"d/{name}", content)) for name, content in (("a", b"first" * 99), ("b", b"second" * 99))]
    folder = (await env.api.post("/v3/files", files=files, data={"network": "public"})).json()["data"]["cid"]
    env.flip(b"first" * 99 + b"second" * 99, 5 * 99 + 7)
    assert await env.fetch(f"/ipfs/{folder}/a") == (200, b"first" * 99, True)
    for query in ("", "?format=raw", "?format=car"):
        status, came, whole = await env.fetch(f"/ipfs/{folder}/b{query}")
        assert status >= 500 or not whole
        assert b"second" * 20 not in came


async def test_who_is_hurt_is_named_and_the_same_upload_heals(env: DamageEnv) -> None:
    content = b"precious" * 1000
    file = await env.keep(content, "precious.txt", "private")
    other = env.server.client(env.server.key("other"), "uploads.localhost")
    theirs = (await other.post("/v3/files", files={"file": ("theirs.txt", content)})).json()["data"]
    await env.keep(b"whole" * 1000)
    env.flip(content, 4321)
    assert await _scrub(env, "--known") == (0, [])
    code, rows = await _scrub(env)
    assert code == 1
    told = {row["id"]: (row["tenant"], row["name"], row["cid"], row["network"]) for row in rows}
    assert told == {
        file["id"]: ("acme", "precious.txt", file["cid"], "private"),
        theirs["id"]: ("other", "theirs.txt", file["cid"], "private"),
    }
    again = await env.keep(content, "again.txt", "private")
    assert (again["id"], again["name"], again["is_duplicate"]) == (file["id"], "precious.txt", True)
    assert await env.fetch(await env.link(file["cid"])) == (200, content, True)
    code, rows = await _scrub(env, "--known")
    assert [row["id"] for row in rows] == [theirs["id"]]


async def test_a_pin_of_what_is_damaged_fetches_it_again(env: DamageEnv) -> None:
    content = b"pinned" * 1000
    file = await env.keep(content)
    env.flip(content, 99)
    assert (await _scrub(env))[0] == 1
    other = env.server.client(env.server.key("other"), "uploads.localhost")
    theirs = await other.post("/v3/files", files={"file": ("a.bin", content)}, data={"network": "public"})
    assert theirs.json()["data"]["cid"] == file["cid"]
    answer = await env.api.post("/v3/files/public/pin_by_cid", json={"cid": file["cid"]})
    assert answer.status_code == 200, answer.text
    async with asyncio.timeout(20):
        while await env.fetch(f"/ipfs/{file['cid']}") != (200, content, True):
            await asyncio.sleep(0.02)
    assert await _scrub(env, "--known") == (0, [])


async def _scrub(env: DamageEnv, *arguments: str) -> tuple[int, list[dict[str, Any]]]:
    done = await asyncio.to_thread(run, "scrub", *arguments, "--data", str(env.folder), "-o", "json")
    return done.exit_code, json.loads(done.stdout)
