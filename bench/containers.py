"""Start of a container with its warden, compared with bare bwrap; a command in it, compared with the host."""

import asyncio
import subprocess
import time
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path
from statistics import median

from bench.row import Row
from bench.timing import RUNS, median_ms, time_in_turns_async
from roost.agents.lifecycle.workflows.model import container_spec
from roost.drivers.runtime.bwrap.driver import BwrapRuntime
from roost.drivers.runtime.contract import ContainerLimits
from roost.warden_client.client import WardenClient

_CONTAINERS = 20
_COMMANDS = 300


async def run(folder: Path) -> AsyncGenerator[Row]:
    runtime = BwrapRuntime(folder)
    names = [f"bench-{number}" for number in range(_CONTAINERS)]
    starts, bare = list[float](), list[float]()
    for batch in range(RUNS):
        starts.append(median([await _start(runtime, name) for name in names[batch::RUNS]]))
        bare.append(median_ms(partial(_run_bwrap, folder), _CONTAINERS // RUNS))
    yield Row("container and warden ready, p50", starts, "ms", "bare bwrap", bare, "<= 4 x")
    warden = WardenClient(partial(runtime.connect, names[0]))
    commands, spawns = await time_in_turns_async(partial(warden.exec, ["true"]), _spawn, rounds=_COMMANDS // RUNS)
    yield Row("a command in a container, warden alone, p50", commands, "ms", "on the host", spawns, "<= 2 x")
    memory = [_pss(container.pid) for container in await runtime.list() if container.pid]
    for name in names:
        await runtime.delete(name)
    yield Row("memory of a warden, PSS", memory, "MB", "an empty Python", _python_memory(), "<= 2 x")


async def _start(runtime: BwrapRuntime, name: str) -> float:
    """Start a container; return the milliseconds until its warden is ready."""
    spec = container_spec(name, None, ContainerLimits())
    for relay in spec.relays.values():
        (await runtime.listen(spec.agent_id, relay, _close)).close()
    began = time.perf_counter()
    await runtime.start(spec)
    return (time.perf_counter() - began) * 1000


async def _spawn() -> None:
    subprocess.run(["true"], check=True)


def _close(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


def _run_bwrap(folder: Path) -> None:
    """Run `true` under bwrap with the same namespaces."""
    binary = next(path for path in folder.rglob("bwrap") if path.is_file())
    command = [str(binary), "--unshare-all", "--ro-bind", "/usr", "/usr", "--symlink", "usr/lib", "/lib"]
    command += ["--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev", "/usr/bin/true"]
    subprocess.run(command, check=True)


def _python_memory() -> float:
    command = ["/usr/bin/python3", "-S", "-E", "-I", "-c", "input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        time.sleep(0.2)
        value = _pss(process.pid)
        process.kill()
    return value


def _pss(pid: int) -> float:
    """Return the proportional set size of a process in MB."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no Pss line")
