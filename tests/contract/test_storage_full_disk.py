"""A full disk: uploads are refused with a reason, leave no remains, and work again later."""

import hashlib
import resource
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2 as httpx
import pytest

from tests.support.server import RunningServer, running

MIB = 1024**2
PART = "application/offset+octet-stream"


def content(number: int, size: int = MIB) -> bytes:
    return hashlib.shake_128(str(number).encode()).digest(size)


def refused(answer: httpx.Response) -> None:
    assert answer.status_code == 503, answer.text
    assert answer.json()["error"]["code"] == 503
    assert any(
        word in answer.json()["error"]["message"] for word in ("No space left", "too large", "cannot be written")
    )


async def send(api: httpx.AsyncClient, data: bytes) -> httpx.Response:
    return await api.post("/v3/files", files={"file": ("a.bin", data)}, data={"network": "public"})


async def begin(api: httpx.AsyncClient, size: int) -> str:
    answer = await api.post("/v3/files", headers={"Upload-Length": str(size)})
    assert answer.status_code == 201, answer.text
    return urlsplit(answer.headers["Location"]).path


async def part(api: httpx.AsyncClient, path: str, offset: int, data: bytes) -> httpx.Response:
    return await api.patch(path, headers={"Upload-Offset": str(offset), "Content-Type": PART}, content=data)


async def listed(api: httpx.AsyncClient) -> list[dict[str, Any]]:
    answer = await api.get("/v3/files/public", params={"limit": "1000", "order": "ASC"})
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]["files"]


async def visitor(server: RunningServer) -> httpx.AsyncClient:
    rows = (await server.client(server.key(), "api.localhost").get("/v3/gateways")).json()["data"]["rows"]
    return server.client(None, f"{rows[0]['domain']}.gateways.localhost")


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """Return a data folder on a disk of 14 MiB."""
    folder = tmp_path / "data"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=14m", "tmpfs", folder], check=False)
    if mounted.returncode:
        pytest.skip("a disk of its own takes root")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


async def test_nothing_is_half_there_and_there_is_more_later(small: Path) -> None:
    async with running(small) as server:
        api, reader = server.client(server.key(), "uploads.localhost"), await visitor(server)
        ballast = small / "ballast"
        ballast.write_bytes(bytes(4 * MIB))
        kept: list[str] = []
        while (answer := await send(api, content(len(kept)))).status_code == 200:
            kept.append(answer.json()["data"]["cid"])
        refused(answer)
        assert len(kept) > 2
        place = await begin(api, 2 * MIB)
        refused(await part(api, place, 0, content(1000, 2 * MIB)))
        wide = await listed(api)
        deleted = await server.client(server.key(), "api.localhost").delete(f"/v3/files/public/{wide[0]['id']}")
        assert deleted.status_code == 200, deleted.text  # content leaves some space for the database
        kept.pop(0)
        left = small / "left"
        left.write_bytes(bytes(shutil.disk_usage(small).free))
        refused(await send(api, content(1001)))
        refused(await send(api, b"few bytes"))
        assert [file["cid"] for file in await listed(api)] == kept
        for number, cid in enumerate(kept, 1):
            assert (await reader.get(f"/ipfs/{cid}")).content == content(number)
        assert not list((small / "blobs" / "new").iterdir())
        ballast.unlink()
        left.unlink()
        assert (await send(api, content(1001))).status_code == 200
        offset = int((await api.head(place)).headers["Upload-Offset"])
        answer = await part(api, place, offset, content(1000, 2 * MIB)[offset:])
        assert (answer.status_code, "upload-cid" in answer.headers) == (204, True), answer.text
        assert len(await listed(api)) == len(kept) + 1


@pytest.fixture
async def limited(tmp_path: Path) -> AsyncIterator[RunningServer]:
    """Run a server that cannot write a file of more than 4 MiB."""
    async with running(tmp_path / "data") as server:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4 * MIB, before[1]))
        try:
            yield server
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def test_a_file_that_the_disk_does_not_take(limited: RunningServer) -> None:
    api, reader = limited.client(limited.key(), "uploads.localhost"), await visitor(limited)
    small = (await send(api, content(1))).json()["data"]["cid"]
    refused(await send(api, content(2, 6 * MIB)))
    place = await begin(api, 6 * MIB)
    refused(await part(api, place, 0, content(3, 6 * MIB)))
    assert [file["cid"] for file in await listed(api)] == [small]
    assert (await reader.get(f"/ipfs/{small}")).content == content(1)
    assert (await send(api, content(4))).status_code == 200
    assert (await api.delete(place)).status_code == 204


async def test_a_skill_that_the_disk_does_not_take(limited: RunningServer, tmp_path: Path) -> None:
    api, blobs = limited.client(limited.key()), tmp_path / "data/blobs"
    skill = ("file", ("notes/SKILL.md", b"---\nname: notes\ndescription: Notes\n---\n"))
    answer = await api.post("/v0/skills", files=[skill, ("file", ("notes/large", content(7, 6 * MIB)))])
    assert (answer.status_code, list(answer.json())) == (503, ["error"]), answer.text
    assert (await api.get("/v0/skills")).json()["skills"] == []
    assert not [path for path in blobs.rglob("*") if path.is_file() and path.stat().st_size > MIB]
    assert (await api.post("/v0/skills", files=[skill])).status_code == 201
