"""Agents in a real Docker Engine: starts, commands and files beside the bare Engine API and bwrap, and idle cost.

As root with Debian's packages; elsewhere the benchmark fails with the reason.
"""

import os
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from statistics import median

from bench.memory import FAKE_SERVER
from bench.processes import cpu_seconds
from bench.row import Row
from bench.timing import RUNS, time_in_turns, time_in_turns_async
from roost.agents.lifecycle.workflows.model import container_spec
from roost.drivers.runtime.bwrap.driver import BwrapRuntime
from roost.drivers.runtime.contract import ContainerLimits, Runtime
from roost.drivers.runtime.docker.driver import DockerRuntime
from roost.drivers.runtime.docker.engine_api import EngineApi
from roost.drivers.runtime.docker.images import DockerImages
from roost.warden_client.client import WardenClient
from tests.journeys.server_process import ServerProcess, up
from tests.support.docker_engine import IMAGE, DockerEngine

_STARTS, _COMMANDS, _FILES = 4, 60, 3
_FILE_BYTES = 64 << 20
_AGENTS, _IDLE_SECONDS = 200, 60.0
_START = (
    "An exec of the engine opens the bridge. It takes 35 to 47 ms, beside which the warden starts. Our other calls of "
    "the engine take 4 ms."
)
_TRANSFER = (
    "Bytes of an exec go through the engine, containerd and a carrier: 400 to 565 MB/s through these alone. They "
    "share two processors with both ends of the bridge: the engine takes 150 ms of processor time for an upload, 200 "
    "for a download, where bwrap needs 90 and 150 in all."
)
_IDLE = (
    "The server itself takes most of it, with one agent already: it looks for due work every second. 200 agents add "
    "less than one percent: a look at each container and at its gateway, every few seconds."
)
_SETTLE_SECONDS = 100.0  # until what new agents have is in a snapshot


async def run(folder: Path) -> AsyncGenerator[Row]:
    engine = DockerEngine(folder / "engine")
    try:
        async for row in _measure_runtime(engine, folder):
            yield row
        for row in _measure_server(engine, folder / "server"):
            yield row
    finally:
        engine.stop()


async def _measure_runtime(engine: DockerEngine, folder: Path) -> AsyncGenerator[Row]:
    api = EngineApi(engine.socket)
    docker = DockerRuntime(str(folder), folder, api, DockerImages(api, lambda _: {}, IMAGE, "0"))
    bwrap = BwrapRuntime(folder / "bwrap")
    image = (await docker.images.ensure(None)).image
    starts, bare = list[float](), list[float]()
    for _ in range(RUNS):
        starts.append(median([await _start(docker) for _ in range(_STARTS)]))
        bare.append(median([await _start_bare(api, image) for _ in range(_STARTS)]))
    yield Row("Docker: container and warden ready, p50", starts, "ms", "bare Engine API", bare, "<= 1.3 x", {}, _START)
    wardens = [await _open_warden(runtime) for runtime in (docker, bwrap)]
    commands = await time_in_turns_async(*(partial(one.exec, ["true"]) for one in wardens), rounds=_COMMANDS)
    yield Row("Docker: a command, warden alone, p50", commands[0], "ms", "bwrap", commands[1])
    async for row in measure_transfers("Docker", wardens, _TRANSFER):
        yield row
    for runtime in (docker, bwrap):
        await runtime.delete("one")


async def measure_transfers(name: str, wardens: Sequence[WardenClient], shortfall: str) -> AsyncGenerator[Row]:
    """Measure an upload and a download of a large file by a warden beside bwrap's, which is the second one."""
    for verb, transfer in (("upload", _upload), ("download", _download)):
        times = await time_in_turns_async(*(partial(transfer, one) for one in wardens), rounds=_FILES)
        rates, bwrap = ([_FILE_BYTES / 1e6 / (value / 1000) for value in runs] for runs in times)
        what = f"{name}: {verb} of 64 MiB through the warden"
        yield Row(what, rates, "MB/s", "bwrap", bwrap, ">= 0.7 x", {}, shortfall)


def _measure_server(engine: DockerEngine, folder: Path) -> Iterator[Row]:
    settings = {"ROOST_RUNTIME": "docker", "ROOST_DOCKER_SOCKET": str(engine.socket), "ROOST_DOCKER_IMAGE": IMAGE}
    settings["ROOST_QUOTA_PAID"] = str(_AGENTS)
    with up(folder, "--no-first-agent", program=FAKE_SERVER, **settings) as server:
        agent = server.create("one", "fake")
        with server.client() as client:
            path = f"/v0/agents/{agent['agentId']}/console/exec"

            def execute() -> None:
                client.post(path, json={"command": "true"}).raise_for_status()

            (commands,) = time_in_turns(execute, rounds=_COMMANDS, warm=20)
        yield Row("Docker: console/exec of `true` over HTTP, p50", commands, "ms", goal="<= 6 ms")
        alone = _idle_share(server)
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(partial(server.create, engine="fake"), map(str, range(_AGENTS - 1))))
        name = f"Docker: processor time of the server with {_AGENTS} idle agents"
        yield Row(name, _idle_share(server), "%", "with one", alone, "<= 2 %", {}, _IDLE)


async def _start(runtime: DockerRuntime) -> float:
    """Start a container; return the milliseconds until its warden is ready."""
    began = time.perf_counter()
    await runtime.start(container_spec("one", None, ContainerLimits()))
    took = time.perf_counter() - began
    await runtime.stop("one", 0)
    return took * 1000


async def _start_bare(api: EngineApi, image: str) -> float:
    """Create and start a container of the same image; return the milliseconds that both calls take."""
    command = {"Entrypoint": ["sleep"], "Cmd": ["600"]}  # the image has the entry point `true`
    body = {"Image": image, **command, "HostConfig": {"NetworkMode": "none"}}
    began = time.perf_counter()
    made = await api.call("POST", "/containers/create", body)
    await api.call("POST", f"/containers/{made['Id']}/start")
    took = time.perf_counter() - began
    await api.call("DELETE", f"/containers/{made['Id']}", force=1)
    return took * 1000


async def _open_warden(runtime: Runtime) -> WardenClient:
    await runtime.start(container_spec("one", None, ContainerLimits()))
    return WardenClient(partial(runtime.connect, "one"))


async def _upload(warden: WardenClient) -> None:
    await warden.write("file", os.urandom(1 << 20) * (_FILE_BYTES >> 20))


async def _download(warden: WardenClient) -> None:
    await warden.read("file", limit=_FILE_BYTES)


def _idle_share(server: ServerProcess) -> float:
    """Return the processor time of an idle server in percent of one processor."""
    time.sleep(_SETTLE_SECONDS)
    before = cpu_seconds(server.pid)
    time.sleep(_IDLE_SECONDS)
    return (cpu_seconds(server.pid) - before) / _IDLE_SECONDS * 100
