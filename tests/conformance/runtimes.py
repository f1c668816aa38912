"""Every runtime, with access to its containers and their processes for tests."""

import asyncio
import functools
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from roost.drivers.runtime.bwrap.driver import BwrapRuntime
from roost.drivers.runtime.contract import ContainerSpec, Runtime
from roost.drivers.runtime.fake import FakeRuntime
from roost.warden_client.client import WardenClient

AGENT = "agent-1"

Make = Callable[[Path], Runtime]


def bwrap(folder: Path) -> Runtime:
    return BwrapRuntime(folder, claims=folder / "claims")


CASES = [
    pytest.param(FakeRuntime, id="fake"),
    pytest.param(bwrap, id="bwrap", marks=pytest.mark.container),
]


@dataclass(frozen=True)
class RuntimeEnv:
    """A data folder and a server's runtime for it."""

    make: Make
    folder: Path
    runtime: Runtime

    def again(self) -> Runtime:
        """Return the runtime of the next process of the server."""
        return self.make(self.folder)

    def workspace(self, agent_id: str = AGENT) -> Path:
        return self.folder / "agents" / agent_id / "workspace"

    def home(self, agent_id: str = AGENT) -> Path:
        return self.folder / "agents" / agent_id / "home"

    def warden(self, agent_id: str = AGENT) -> WardenClient:
        return WardenClient(functools.partial(self.runtime.connect, agent_id))

    async def container(self, spec: ContainerSpec | None = None) -> WardenClient:
        spec = spec or ContainerSpec(AGENT)
        await self.runtime.start(spec)
        return self.warden(spec.agent_id)


@asynccontextmanager
async def open_runtime_env(make: Make, folder: Path) -> AsyncIterator[RuntimeEnv]:
    """Create a runtime, and delete all its containers at the end."""
    runtime = make(folder)
    try:
        yield RuntimeEnv(make, folder, runtime)
    finally:
        await runtime.list()
        for path in folder.glob("agents/*"):
            await runtime.delete(path.name)


async def until(condition: Callable[[], object], seconds: float = 15.0) -> None:
    last = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < last, "the condition did not become true in time"
        await asyncio.sleep(0.01)


def drop_stream(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Close a stream of a relay at once."""
    writer.close()


def sleeper() -> str:
    """Return a unique duration for `sleep`, which identifies its process on the host."""
    return f"1000.{int.from_bytes(os.urandom(6))}"


def sleeping(duration: str, states: str = "RSDT") -> bool:
    """Return whether a `sleep` of that duration is in one of these states (proc(5)) here, in any container."""
    return any(stat[2] in states for stat in _read_stats(duration))


def is_foreground_job(duration: str) -> bool:
    """Return whether a `sleep` of that duration is its terminal's foreground job, which keys like ^C reach."""
    return any(stat[4] == stat[7] for stat in _read_stats(duration))


def _read_stats(duration: str) -> Iterator[list[str]]:
    """Yield the fields of proc_pid_stat(5) of each process whose command ends with a `sleep` of that duration."""
    wanted = b"sleep\0" + duration.encode() + b"\0"
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().endswith(wanted):
                yield path.with_name("stat").read_text().split()
        except OSError:  # it ended meanwhile
            continue
