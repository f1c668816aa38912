"""Every runtime, with access to its containers and their processes for tests."""

import asyncio
import functools
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import pytest

from roost.drivers.runtime.bwrap.driver import BwrapRuntime
from roost.drivers.runtime.contract import ContainerSpec, Runtime
from roost.drivers.runtime.docker.driver import DockerRuntime
from roost.drivers.runtime.docker.engine_api import EngineApi
from roost.drivers.runtime.docker.images import DockerImages, EngineFolders
from roost.drivers.runtime.fake import FakeRuntime
from roost.drivers.runtime.kubernetes.driver import KubernetesRuntime
from roost.warden_client.client import WardenClient
from tests.conformance.bridged_runtimes import BridgedFakeRuntime, TlsFakeRuntime
from tests.conformance.clusters import IMAGE as POD_IMAGE
from tests.conformance.clusters import find_claim_folder, kubernetes, open_cluster
from tests.support.docker_engine import DOCKER_SOCKET, IMAGE, get_json

AGENT = "agent-1"

Make = Callable[[Path], Runtime]


def bwrap(folder: Path) -> Runtime:
    return BwrapRuntime(folder, claims=folder / "claims")


def docker(folder: Path) -> Runtime:
    return make_docker_runtime(folder, lambda _: {})


def make_docker_runtime(folder: Path, engine_folders: EngineFolders) -> DockerRuntime:
    folder.mkdir(parents=True, exist_ok=True)
    api = EngineApi(Path(os.environ[DOCKER_SOCKET]))
    return DockerRuntime(str(folder), folder, api, DockerImages(api, engine_folders, IMAGE, "0"))


async def limit_volumes(runtime: DockerRuntime, size: int) -> None:
    """Make the volumes of the agent before its container, each a disk of `size` bytes."""
    for volume in runtime._volumes(AGENT).values():
        options = {"type": "tmpfs", "device": "tmpfs", "o": f"size={size},uid=1000,gid=1000,mode=700"}
        labels = runtime._labels(AGENT)
        await runtime._api.call("POST", "/volumes/create", {"Name": volume, "DriverOpts": options, "Labels": labels})


def docker_volume(runtime: DockerRuntime, agent_id: str, name: str) -> Path:
    """Return the folder of a volume, of one that is missing where the engine of the tests would create it."""
    socket, volume = Path(os.environ[DOCKER_SOCKET]), f"roost-{runtime._mark}-{agent_id}-{name}"
    folders = {found["Name"]: Path(found["Mountpoint"]) for found in get_json(socket, "volumes")["Volumes"] or ()}
    return folders.get(volume, socket.parent / "data/volumes" / volume / "_data")


IN_A_CLUSTER = pytest.param(kubernetes, id="kubernetes", marks=pytest.mark.container)
CASES = [
    pytest.param(FakeRuntime, id="fake"),
    pytest.param(bwrap, id="bwrap", marks=pytest.mark.container),
    pytest.param(docker, id="docker", marks=[pytest.mark.container, pytest.mark.docker]),
    *([IN_A_CLUSTER] if POD_IMAGE in os.environ else []),
]
CARRIER_CASES = [
    *CASES,
    pytest.param(BridgedFakeRuntime, id="fake-bridged"),
    pytest.param(TlsFakeRuntime, id="fake-tls"),
]
"""For tests of streams, with all carriers of bridges."""
RUNTIME_CASES = [*CARRIER_CASES, *([] if POD_IMAGE in os.environ else [IN_A_CLUSTER])]
"""For tests of the runtimes themselves, also of a fake cluster: what is in its containers are those of the fake."""


@dataclass(frozen=True)
class RuntimeEnv:
    """A data folder and a server's runtime for it."""

    make: Make
    folder: Path
    runtime: Runtime
    later: list[Runtime] = field(default_factory=list)

    def again(self) -> Runtime:
        """Return the runtime of the next process of the server."""
        self.later.append(self.make(self.folder))
        return self.later[-1]

    def workspace(self, agent_id: str = AGENT) -> Path:
        return self._folder(agent_id, "workspace")

    def home(self, agent_id: str = AGENT) -> Path:
        return self._folder(agent_id, "home")

    @property
    def end_seconds(self) -> float:
        """Less than the warden's own grace of 3 s; a kubelet waits for 2 s at least."""
        return 5.0 if isinstance(self.runtime, KubernetesRuntime) else 2.5

    def skip(self, reason: str) -> NoReturn:
        pytest.skip(reason)

    def skip_docker(self, reason: str) -> None:
        if isinstance(self.runtime, DockerRuntime | KubernetesRuntime):
            pytest.skip(reason)

    def skip_kubernetes(self, reason: str) -> None:
        if isinstance(self.runtime, KubernetesRuntime):
            pytest.skip(reason)

    def skip_bridged(self, reason: str) -> None:
        if isinstance(self.runtime, BridgedFakeRuntime | DockerRuntime | KubernetesRuntime):
            pytest.skip(reason)

    def _folder(self, agent_id: str, name: str) -> Path:
        if isinstance(self.runtime, DockerRuntime):
            return docker_volume(self.runtime, agent_id, name)
        if isinstance(self.runtime, KubernetesRuntime):
            return find_claim_folder(self.runtime, agent_id) / name
        return self.folder / "agents" / agent_id / name

    def warden(self, agent_id: str = AGENT) -> WardenClient:
        return WardenClient(functools.partial(self.runtime.connect, agent_id))

    async def container(self, spec: ContainerSpec | None = None) -> WardenClient:
        spec = spec or ContainerSpec(AGENT)
        await self.runtime.start(spec)
        return self.warden(spec.agent_id)


@asynccontextmanager
async def open_runtime_env(make: Make, folder: Path) -> AsyncIterator[RuntimeEnv]:
    """Create a runtime, and delete all its containers at the end."""
    cluster = open_cluster(folder) if make is kubernetes else nullcontext()
    async with cluster, _open_runtime_env(make, folder) as env:
        yield env


@asynccontextmanager
async def _open_runtime_env(make: Make, folder: Path) -> AsyncIterator[RuntimeEnv]:
    runtime = make(folder)
    env = RuntimeEnv(make, folder, runtime)
    try:
        yield env
    finally:
        await runtime.list()
        for bridged in env.later:
            if isinstance(bridged, BridgedFakeRuntime | DockerRuntime | KubernetesRuntime):
                bridges = bridged.bridges if isinstance(bridged, BridgedFakeRuntime) else bridged._bridges
                for agent_id in list(bridges._keepers):
                    await bridges.drop(agent_id)
        for agent_id in await runtime.list_stored():
            await runtime.delete(agent_id)
        for opened in (runtime, *env.later):
            if isinstance(opened, KubernetesRuntime):
                await opened.close()


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
