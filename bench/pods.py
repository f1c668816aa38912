"""A fake cluster in a process of its own, whose pods are real wardens: `FOLDER`; the end of its input ends it.

It prints the address of its API server, then a line for each pod that it reports as running, once its warden listens:
agent, and seconds since the pod was created. Wardens listen at the address of their pod, so that no other program
copies their bytes.
"""

import asyncio
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from roost.core.sensitive import Sensitive
from roost.drivers.runtime.bridge import Bridge
from roost.drivers.runtime.contract import BRIDGE_PORT
from roost.drivers.runtime.kubernetes import plan
from roost.drivers.runtime.tls_carrier import make_bridge_context, open_tls_carrier
from tests.conformance.bridged_runtimes import TlsFakeRuntime
from tests.conformance.clusters import WardenPods
from tests.support.kubernetes.cluster import ADMIN_TOKEN, FakeCluster, running_cluster
from tests.support.kubernetes.kubelet import ContainerExit, PodRun
from tests.support.kubernetes.store import Change

_RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
NAMESPACE = "agents"


class _PodRuntime(TlsFakeRuntime):
    """Wardens that listen at the addresses of their pods."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.addresses: dict[str, str] = {}

    def _listen(self, agent_id: str) -> socket.socket:
        listener = socket.create_server((self.addresses[agent_id], BRIDGE_PORT))
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # which its connections have, too
        return listener

    async def _open_carrier(self, agent_id: str, bridge: Bridge) -> None:
        context = make_bridge_context(Sensitive(self.certificates[agent_id]))
        await open_tls_carrier(self.addresses[agent_id], BRIDGE_PORT, context, bridge)


class _ListeningPods(WardenPods):
    """Pods that are reported as running once their wardens listen."""

    def __init__(self, cluster: FakeCluster, runtime: _PodRuntime, folder: Path) -> None:
        super().__init__(cluster, runtime, folder)
        self._addresses = runtime.addresses
        self._agents: dict[str, str] = {}
        cluster.kubelet.start_pod = self._start_pod

    async def _start_pod(self, run: PodRun) -> None:
        self._addresses[run.pod["metadata"]["labels"][plan.AGENT]] = run.address
        self._agents[run.address] = await self._start(run)

    async def _run(self, run: PodRun) -> ContainerExit:
        agent_id = self._agents.pop(run.address)
        await run.stopping.wait()
        await self._runtime.stop(agent_id, grace=0.5)
        return ContainerExit(0)


class _PodTimes:
    """Prints how long each pod took."""

    def __init__(self) -> None:
        self._created: dict[str, float] = {}

    def handle_change(self, change: Change) -> None:
        if change.resource.kind != "Pod" or change.now is None:
            return
        pod = change.now.object
        uid = pod["metadata"]["uid"]
        if change.before is None:
            self._created[uid] = time.monotonic()
        elif pod["status"]["phase"] == "Running" and uid in self._created:
            _print([pod["metadata"]["labels"][plan.AGENT], time.monotonic() - self._created.pop(uid)])


class ClusterProcess:
    """The process of a cluster; `url` is its API server."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        self._lines = process.stdout
        self.url = str(self._read())

    def read_pod_seconds(self, agent_id: str) -> float:
        """Return the own time of the next pod, which must be that of an agent."""
        found, seconds = self._read()
        assert found == agent_id
        return float(seconds)

    def write_kubeconfig(self, path: Path) -> None:
        context = {"cluster": "fake", "user": "admin", "namespace": NAMESPACE}
        config = {"current-context": "fake", "contexts": [{"name": "fake", "context": context}]}
        config |= {"clusters": [{"name": "fake", "cluster": {"server": self.url}}]}
        path.write_text(json.dumps(config | {"users": [{"name": "admin", "user": {"token": ADMIN_TOKEN}}]}))

    def _read(self) -> Any:
        line = self._lines.readline()
        assert line, "the cluster ended"
        return json.loads(line)


@contextmanager
def run_cluster(folder: Path) -> Iterator[ClusterProcess]:
    argv = [sys.executable, "-m", "bench.pods", str(folder)]
    root = Path(__file__).parents[1]
    with subprocess.Popen(argv, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        try:
            yield ClusterProcess(process)
        finally:
            process.stdin.close()  # which ends it


def _print(value: object) -> None:
    print(json.dumps(value), flush=True)


async def _serve(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    async with running_cluster() as cluster:
        cluster.add_namespace(NAMESPACE, _RESTRICTED)
        cluster.store.listeners.append(_PodTimes().handle_change)
        wardens = _ListeningPods(cluster, _PodRuntime(folder), folder)
        _print(cluster.url)
        try:
            await asyncio.to_thread(sys.stdin.read)
        finally:
            await wardens.close()


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1])))
