"""Start of a container with its warden, compared with bare bwrap; a command in it, compared with the host."""

import asyncio
import statistics
import subprocess
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from bench.table import Row, median_ms
from roost.agents.lifecycle.model import container_spec
from roost.drivers.runtime.bwrap.driver import BwrapRuntime
from roost.drivers.runtime.contract import ContainerLimits
from roost.drivers.runtime.warden_client import WardenClient

_CONTAINERS = 20
_COMMANDS = 300


def run(folder: Path) -> Sequence[Row]:
    return asyncio.run(_run(folder))


async def _run(folder: Path) -> Sequence[Row]:
    runtime = BwrapRuntime(folder)
    starts: list[float] = []
    for number in range(_CONTAINERS):
        spec = container_spec(f"bench-{number}", None, ContainerLimits())
        for name in spec.relays.values():
            (await runtime.listen(spec.agent_id, name, _close)).close()
        began = time.perf_counter()
        await runtime.start(spec)
        starts.append((time.perf_counter() - began) * 1000)
    warden = WardenClient(partial(runtime.connect, "bench-0"))
    commands: list[float] = []
    for _ in range(_COMMANDS):
        began = time.perf_counter()
        await warden.exec(["true"])
        commands.append((time.perf_counter() - began) * 1000)
    memory = [_pss(container.pid) for container in await runtime.list() if container.pid]
    for number in range(_CONTAINERS):
        await runtime.delete(f"bench-{number}")
    bare = _run_bwrap(folder)
    spawn = median_ms(lambda: subprocess.run(["true"], check=True), 100)
    return [
        Row("container and warden ready, p50", statistics.median(starts), "ms", "bare bwrap", bare, "<= 25 ms"),
        Row(
            "a command in a container, warden alone, p50",
            statistics.median(commands),
            "ms",
            "on the host",
            spawn,
            "0.9 ms",
        ),
        Row("memory of a warden, PSS", statistics.median(memory), "MB", "an empty Python", _python_memory(), "<= 5 MB"),
    ]


def _close(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


def _run_bwrap(folder: Path) -> float:
    """Return the milliseconds of `true` under bwrap with the same namespaces."""
    binary = next(path for path in folder.rglob("bwrap") if path.is_file())
    command = [str(binary), "--unshare-all", "--ro-bind", "/usr", "/usr", "--symlink", "usr/lib", "/lib"]
    command += ["--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev", "/usr/bin/true"]
    return median_ms(lambda: subprocess.run(command, check=True), 50)


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
