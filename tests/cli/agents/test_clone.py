"""`roost clone` on a real server, with the real Git."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, STDOUT
from pathlib import Path

import pytest

from tests.support.server import RunningServer, running

pytestmark = pytest.mark.container


async def run(server: RunningServer, cwd: Path, *command: str) -> tuple[int | None, str]:
    environment = {
        **os.environ,
        "ROOST_URL": f"http://127.0.0.1:{server.port}",
        "ROOST_TOKEN": server.key(),
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "PYTHONPATH": str(Path.cwd()),
    }
    process = await asyncio.create_subprocess_exec(*command, cwd=cwd, env=environment, stdout=PIPE, stderr=STDOUT)
    async with asyncio.timeout(60):
        output = (await process.communicate())[0].decode()
    return process.returncode, output


async def test_a_clone_pulls_and_pushes_without_a_stored_token(tmp_path: Path) -> None:
    roost, git = (sys.executable, "-m", "roost"), ("git", "-c", "user.name=a", "-c", "user.email=a@b")
    async with running(tmp_path / "data") as server:
        agent = (await server.client(server.key()).post("/v0/agents", json={"name": "Ada"})).json()["agent"]
        client = server.agent_client(agent)
        await client.put("/v0/files/content?path=file", content=b"one\n")
        code, output = await run(server, tmp_path, *roost, "clone", "Ada")
        assert code == 0, output
        assert (tmp_path / "Ada/file").read_text() == "one\n"
        assert agent["gatewayToken"] not in (tmp_path / "Ada/.git/config").read_text()
        await client.put("/v0/files/content?path=file", content=b"two\n")
        assert await run(server, tmp_path / "Ada", *git, "pull", "-q") == (0, "")
        (tmp_path / "Ada/file").write_text("three\n")
        assert await run(server, tmp_path / "Ada", *git, "commit", "-qam", "three") == (0, "")
        code, output = await run(server, tmp_path / "Ada", *git, "push", "-q")
        assert code == 0, output
        assert (await client.get("/v0/files?path=file")).content == b"three\n"
        code, output = await run(server, tmp_path, *roost, "clone", "nobody")
        assert (code, "There is no agent 'nobody'" in output) == (5, True)
