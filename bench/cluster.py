"""The Kubernetes runtime with an API server and real wardens beside it: starts, commands and files.

The API server and the kubelet are the fakes of the tests, in a process of their own. What a pod needs by itself is
measured there, and taken off a start; image, network and disk of a real cluster are in none of the figures.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median

import uvloop

from bench.docker import measure_transfers
from bench.pods import NAMESPACE, ClusterProcess, run_cluster
from bench.row import Row
from bench.timing import RUNS, time_in_turns_async
from bench.tls_echo import run_tls_echo
from bench.worker import iterate_rows
from roost.agents.lifecycle.workflows.model import container_spec
from roost.core.sensitive import Sensitive
from roost.drivers.runtime.bwrap.driver import BwrapRuntime
from roost.drivers.runtime.contract import ContainerLimits, Runtime
from roost.drivers.runtime.kubernetes import plan
from roost.drivers.runtime.kubernetes.api import KubernetesApi
from roost.drivers.runtime.kubernetes.credentials import ClusterAccess, ClusterCredentials
from roost.drivers.runtime.kubernetes.driver import KubernetesRuntime
from roost.drivers.runtime.kubernetes.errors import KubernetesNotFound
from roost.drivers.runtime.kubernetes.plan import ClusterOptions
from roost.drivers.runtime.tls_carrier import make_bridge_certificate
from roost.warden_client.client import WardenClient
from tests.support.kubernetes.cluster import ADMIN_TOKEN

_STARTS, _COMMANDS = 4, 60
_MESSAGE = bytes(256)
_START = (
    "The requests that a new agent takes are the last reference, most of it the fake API server's. The rest is the key "
    "and certificate of its bridge, the way of an event to us, the TLS handshake and the first answer."
)
_TRANSFER = "Both ends encrypt and copy each byte in Python, where bwrap's have a socket that only copies."


def run(folder: Path) -> Iterator[Row]:
    """Measure in the event loop of the server."""
    yield from iterate_rows(_measure(folder.resolve()), uvloop.new_event_loop)


async def _measure(folder: Path) -> AsyncGenerator[Row]:
    with run_cluster(folder / "cluster") as cluster:
        access = ClusterAccess(cluster.url, NAMESPACE, ClusterCredentials(token=Sensitive(ADMIN_TOKEN.encode())))
        options = ClusterOptions(image="fake:1", server_networks=("127.0.0.0/8",), accepts_open_network=True)
        api = KubernetesApi(access, "0")
        runtime = KubernetesRuntime(api, options, folder)
        try:
            for row in await _measure_starts(cluster, runtime, api, options):
                yield row
            async for row in _measure_wardens(runtime, BwrapRuntime(folder / "bwrap")):
                yield row
        finally:
            await runtime.close()
            await api.close()


async def _measure_starts(
    cluster: ClusterProcess, runtime: KubernetesRuntime, api: KubernetesApi, options: ClusterOptions
) -> list[Row]:
    names = map("start-{}".format, count())
    await _start(cluster, runtime, next(names))  # which makes what all pods share
    ours, pods, requests = list[float](), list[float](), list[float]()
    for _ in range(RUNS):
        batch = [await _start(cluster, runtime, next(names)) for _ in range(_STARTS)]
        ours.append(median(own for own, _ in batch))
        pods.append(median(pod for _, pod in batch))
        requests.append(median([await _send_requests(api, options, next(names)) for _ in range(_STARTS)]))
    name, reference = "Kubernetes: our share of a start, p50", "its requests to the API server alone"
    return [
        Row(name, ours, "ms", reference, requests, "<= 150 ms", {}, _START),
        Row("Kubernetes: the pod's own time, which is not in it, p50", pods, "ms"),
    ]


async def _measure_wardens(runtime: KubernetesRuntime, bwrap: BwrapRuntime) -> AsyncGenerator[Row]:
    wardens = [await _open_warden(one) for one in (runtime, bwrap)]
    async with run_tls_echo(_MESSAGE) as echo:
        ways = (*(partial(one.exec, ["true"]) for one in wardens), echo)
        commands, beside, echoes = await time_in_turns_async(*ways, rounds=_COMMANDS, warm=5)
    others = {f"bare TLS, {len(_MESSAGE)} bytes there and back": echoes}
    yield Row("Kubernetes: a command, warden alone, p50", commands, "ms", "bwrap", beside, "<= 5 ms", others)
    async for row in measure_transfers("Kubernetes", wardens, _TRANSFER):
        yield row
    for one in (runtime, bwrap):
        await one.delete("one")


async def _start(cluster: ClusterProcess, runtime: KubernetesRuntime, name: str) -> tuple[float, float]:
    """Start and delete a new agent; return the milliseconds of our part and of its pod."""
    spec = container_spec(name, None, ContainerLimits())
    began = time.perf_counter()
    await runtime.start(spec)
    took = time.perf_counter() - began
    pod = await asyncio.to_thread(cluster.read_pod_seconds, name)
    await runtime.delete(name)
    return (took - pod) * 1000, pod * 1000


async def _send_requests(api: KubernetesApi, options: ClusterOptions, name: str) -> float:
    """Send what a start of a new agent asks the API server for, with nothing made; return the milliseconds."""
    claim = plan.claim_object(options, name)
    secret = plan.secret_object(options, name, make_bridge_certificate(name), claim_uid="0")
    pod = plan.pod_object(options, container_spec(name, None, ContainerLimits()), secret["metadata"]["name"])
    began = time.perf_counter()
    for kind, body in (("persistentvolumeclaims", claim), ("secrets", secret)):
        with suppress(KubernetesNotFound):
            await api.get(api.path(kind, body["metadata"]["name"]))
        await api.create(api.path(kind), body, dryRun="All")
    await api.create(api.path("pods"), pod, dryRun="All")
    return (time.perf_counter() - began) * 1000


async def _open_warden(runtime: Runtime) -> WardenClient:
    await runtime.start(container_spec("one", None, ContainerLimits()))
    return WardenClient(partial(runtime.connect, "one"))
