"""Start of a container with its warden, compared with bare bwrap; a command in it, compared with the host."""

import asyncio
import subprocess
import time
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path
from statistics import median

from bench.bare_programs import bare_runner, run_bare
from bench.row import Row
from bench.timing import RUNS, median_ms, time_in_turns_async
from roost.agents.lifecycle.workflows.model import container_spec
from roost.drivers.runtime.bwrap.driver import BwrapRuntime
from roost.drivers.runtime.contract import ContainerLimits
from roost.warden_client.client import WardenClient

_CONTAINERS = 20
_COMMANDS = 300
_PYTHON = ("/usr/bin/python3", "-S", "-E", "-I")
_START = (
    "The warden is a Python program, and an empty one takes what the last reference says. The rest is the warden's "
    "modules, its sockets and the server's part."
)
_COMMAND = (
    "What no runner in a sandbox can spare is the last reference. The rest is Python's on both ends of the warden's "
    "socket: output, deadline and answer of each command."
)


async def run(folder: Path) -> AsyncGenerator[Row]:
    runtime = BwrapRuntime(folder)
    names = [f"bench-{number}" for number in range(_CONTAINERS)]
    starts, bare, pythons = list[float](), list[float](), list[float]()
    for batch in range(RUNS):
        starts.append(median([await _start(runtime, name) for name in names[batch::RUNS]]))
        bare.append(median_ms(partial(_run_bwrap, folder, "/usr/bin/true"), _CONTAINERS // RUNS))
        pythons.append(median_ms(partial(_run_bwrap, folder, *_PYTHON, "-c", ""), _CONTAINERS // RUNS))
    others = {"bare bwrap with an empty Python": pythons}
    yield Row("container and warden ready, p50", starts, "ms", "bare bwrap", bare, "<= 4 x", others, _START)
    warden = WardenClient(partial(runtime.connect, names[0]))
    with bare_runner(folder) as path:
        ways = partial(warden.exec, ["true"]), _spawn, partial(run_bare, path)
        commands, spawns, least = await time_in_turns_async(*ways, rounds=_COMMANDS // RUNS)
    name, others = "a command in a container, warden alone, p50", {"a bare shell command in a sandbox": least}
    yield Row(name, commands, "ms", "on the host", spawns, "<= 2 x", others, _COMMAND)
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


def _run_bwrap(folder: Path, *program: str) -> None:
    """Run a program under bwrap with the same namespaces."""
    binary = next(path for path in folder.rglob("bwrap") if path.is_file())
    command = [str(binary), "--unshare-all", "--ro-bind", "/usr", "/usr", "--symlink", "usr/lib", "/lib"]
    command += ["--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev"]
    subprocess.run([*command, *program], check=True)


def _python_memory() -> float:
    with subprocess.Popen([*_PYTHON, "-c", "input()"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
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
