"""The storage commands against a real server: what goes up comes down, under the CID that was told before."""

import asyncio
import json
import random
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.server import RunningServer, running


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[RunningServer]:
    """Run a server whose domain the command line has to find out."""
    async with running(tmp_path / "data", ROOST_DOMAIN="cloud.example") as made:
        yield made


async def roost(server: RunningServer, *arguments: str, at: Path) -> str:
    environment = {"ROOST_URL": f"http://127.0.0.1:{server.port}", "ROOST_TOKEN": server.key()}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "roost", *arguments),
        cwd=at,
        env={"PYTHONPATH": str(Path(__file__).parents[2]), "HOME": str(at), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    out, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return out.decode()


async def run_for_json(server: RunningServer, *arguments: str, at: Path) -> Any:
    return json.loads(await roost(server, *arguments, "-o", "json", at=at))


async def test_a_folder_goes_up_under_the_cid_that_was_told(server: RunningServer, tmp_path: Path) -> None:
    folder = tmp_path / "trip"
    (folder / "days").mkdir(parents=True)
    chance = random.Random(1)
    (folder / 'a "quoted" näme.txt').write_bytes(b"a")
    (folder / "days" / "large.bin").write_bytes(chance.randbytes(3_000_000))
    (folder / "empty").touch()
    for profile in ("v1", "v0", "unixfs-v1-2025"):
        told = await run_for_json(server, "files", "cid", "trip", "--profile", profile, at=tmp_path)
        made = await run_for_json(server, "files", "upload", "trip", "--profile", profile, "--public", at=tmp_path)
        assert (made["cid"], made["size"], made["number_of_files"]) == (told["cid"], 3_000_001, 3)
        assert made["mime_type"] == "directory"


async def test_a_file_comes_back(server: RunningServer, tmp_path: Path) -> None:
    content = random.Random(2).randbytes(2_000_000)
    (tmp_path / "up.bin").write_bytes(content)
    for network in ([], ["--public"]):
        made = await run_for_json(server, "files", "upload", "up.bin", "-k", "kind=test", *network, at=tmp_path)
        assert made["keyvalues"] == {"kind": "test"}
        await roost(server, "files", "get", made["cid"], "--to", "down.bin", *network, at=tmp_path)
        assert (tmp_path / "down.bin").read_bytes() == content
    group = await run_for_json(server, "groups", "create", "some", "--public", at=tmp_path)
    await roost(server, "groups", "add", group["id"], made["id"], "--public", at=tmp_path)
    listed = await run_for_json(server, "files", "list", "--public", "--group", group["id"], at=tmp_path)
    assert [row["id"] for row in listed] == [made["id"]]
    assert (await run_for_json(server, "gateways", "list", at=tmp_path))[0]["restrict"] is True
