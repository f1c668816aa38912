"""Real containers for tests."""

import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from roost.drivers.runtime.contract import Container, ContainerSpec, Runtime
from roost.warden_client.client import ExecResult, WardenClient

AS_ROOT = os.geteuid() == 0
PYTHON = "/usr/bin/python3"


class RunningContainer:
    """One running container."""

    def __init__(self, runtime: Runtime, container: Container) -> None:
        self.runtime: Any = runtime  # tests of a runtime use its own parts, too
        self.agent_id = container.agent_id
        assert container.pid
        self.pid = container.pid
        self.warden = WardenClient(partial(runtime.connect, container.agent_id))

    async def run(self, *argv: str, seconds: float = 30.0) -> ExecResult:
        return await self.warden.exec(argv, timeout=seconds)

    async def sh(self, script: str) -> str:
        """Return the output of a script that must succeed."""
        result = await self.run("sh", "-c", script)
        assert result.exit_code == 0, result
        return result.stdout.decode()

    async def run_python(self, program: str) -> Any:
        """Return the value that a Python program passes to `tell(value)`."""
        preamble = "import json, os, socket, errno\ndef tell(value): print(json.dumps(value))\n"
        result = await self.run(PYTHON, "-I", "-c", preamble + program)
        assert result.exit_code == 0, result.stderr.decode()
        return json.loads(result.stdout)

    async def is_responsive(self) -> bool:
        return (await self.run("true")).exit_code == 0


Start = Callable[..., Any]


@asynccontextmanager
async def containers(runtime: Runtime) -> AsyncIterator[Start]:
    """Start containers by `await start("id", **fields of ContainerSpec)` and delete them all afterwards."""
    started: list[str] = []

    async def start(agent_id: str = "one", **fields: Any) -> RunningContainer:
        started.append(agent_id)
        return RunningContainer(runtime, await runtime.start(ContainerSpec(agent_id, **fields)))

    try:
        yield start
    finally:
        for agent_id in started:
            await runtime.delete(agent_id)
