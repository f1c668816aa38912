"""The real Git as a client of a server in the same process."""

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.server import RunningServer


@dataclass(frozen=True)
class GitClient:
    """Git in one folder, with the credentials of an agent in its URLs; `program` is the start of its command."""

    server: RunningServer
    agent: dict[str, Any]
    folder: Path
    program: Sequence[str] = ("git",)

    def url(self, host: str = "agents.localhost", password: str | None = None) -> str:
        """Return the URL on the management address."""
        address = f"x:{password or self.agent['gatewayToken']}@{host}:{self.server.port}"
        return f"http://{address}/v0/agents/{self.agent['agentId']}/git"

    async def run(self, *arguments: str | Path, cwd: str = ".", ok: bool = True) -> str:
        """Run Git and return its output with its messages."""
        process = await asyncio.create_subprocess_exec(
            *self.program, "-c", "safe.directory=*", "-c", "user.name=test", "-c", "user.email=test@example.com",
            *arguments,
            cwd=self.folder / cwd,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={
                "PATH": os.environ["PATH"], "HOME": "/nonexistent", "LANG": "C.UTF-8",
                "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_TERMINAL_PROMPT": "0",
            },
        )  # fmt: skip
        output = (await asyncio.wait_for(process.communicate(), 60))[0].decode(errors="replace")
        assert (process.returncode == 0) is ok, output
        return output

    async def clone(self, name: str, *options: str) -> Path:
        await self.run("clone", "-q", *options, self.url(), name)
        return self.folder / name

    async def commit(self, **files: bytes) -> str:
        """Write files of the workspace and return their commit; an underscore in a name stands for a dot."""
        client = self.server.agent_client(self.agent)
        for name, content in files.items():
            path = name.replace("_", ".")
            (await client.put("/v0/files/content", params={"path": path}, content=content)).raise_for_status()
        return (await self.run("ls-remote", self.url(), "main")).splitlines()[-1].split()[0]  # after warnings
