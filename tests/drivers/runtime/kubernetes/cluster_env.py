"""A fake cluster whose pods are real wardens, and runtimes of servers in it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from roost.core.sensitive import Sensitive
from roost.drivers.runtime.contract import ContainerSpec
from roost.drivers.runtime.kubernetes.api import KubernetesApi
from roost.drivers.runtime.kubernetes.credentials import ClusterAccess, ClusterCredentials
from roost.drivers.runtime.kubernetes.driver import KubernetesRuntime
from roost.drivers.runtime.kubernetes.plan import ClusterOptions
from tests.support.kubernetes.cluster import ADMIN_TOKEN, FakeCluster

OPTIONS = ClusterOptions(image="fake:1", server_networks=("127.0.0.0/8",), accepts_open_network=True)
SPEC = ContainerSpec("ada")


@dataclass(frozen=True)
class ClusterEnv:
    """A fake cluster, and runtimes of servers in it."""

    cluster: FakeCluster
    folder: Path

    @asynccontextmanager
    async def server(self, token: str = ADMIN_TOKEN, **options: Any) -> AsyncIterator[KubernetesRuntime]:
        access = ClusterAccess(self.cluster.url, "agents", ClusterCredentials(token=Sensitive(token.encode())))
        runtime = KubernetesRuntime(KubernetesApi(access, "0"), replace(OPTIONS, **options), self.folder)
        try:
            yield runtime
        finally:
            await runtime.close()

    def names(self, kind: str) -> list[str]:
        names = [found["metadata"]["name"] for found in self.cluster.store.objects(kind, "agents")]
        return sorted(name for name in names if name != "kube-root-ca.crt")

    def pods(self) -> list[str]:
        return self.names("Pod")

    def make_old_map(self, name: str) -> None:
        metadata = {"name": name, "namespace": "agents", "labels": OPTIONS.labels}
        self.cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        self.make_old("ConfigMap", name)

    def make_old(self, kind: str, name: str, created: str = "2020-01-01T00:00:00Z") -> None:
        """Give an object an earlier time of its creation."""
        found = self.cluster.store.get(kind, "agents", name)
        assert found is not None
        changed = {**found["metadata"], "creationTimestamp": created}
        self.cluster.writer.change(found, lambda live: {**live, "metadata": changed})


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.01)
