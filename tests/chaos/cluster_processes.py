"""Processes of a fleet: `python -m tests.chaos.cluster_processes cluster FOLDER`, or `server FOLDER KUBECONFIG`.

The first is a fake cluster whose pods are real wardens; it writes `kubeconfig` into its folder. The second is a server
of such a cluster, with the fake engine; its settings are in its environment. Both print one line when they are ready,
and end with their standard input.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from roost.core import log
from roost.drivers.runtime.kubernetes.api import KubernetesApi
from roost.drivers.runtime.kubernetes.credentials import load_kubeconfig
from roost.drivers.runtime.kubernetes.driver import KubernetesRuntime
from roost.drivers.runtime.kubernetes.plan import ClusterOptions
from tests.conformance.clusters import running_wardens
from tests.support.kubernetes.cluster import ADMIN_TOKEN
from tests.support.server import running


@asynccontextmanager
async def run_cluster(folder: Path) -> AsyncIterator[str]:
    async with running_wardens(folder / "pods") as cluster:
        cluster.add_node("large", cpu="400", memory="1000Gi", pods="1000")
        config = {
            "current-context": "fake",
            "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "admin", "namespace": "agents"}}],
            "clusters": [{"name": "fake", "cluster": {"server": cluster.url}}],
            "users": [{"name": "admin", "user": {"token": ADMIN_TOKEN}}],
        }
        (folder / "kubeconfig").write_text(json.dumps(config))
        yield cluster.url


@asynccontextmanager
async def run_server(folder: Path, kubeconfig: Path) -> AsyncIterator[str]:
    options = ClusterOptions(image="fake:1", server_networks=("127.0.0.0/8",), accepts_open_network=True)
    runtime = KubernetesRuntime(KubernetesApi(load_kubeconfig(kubeconfig), "0"), options, folder)
    try:
        settings: dict[str, Any] = {name: value for name, value in os.environ.items() if name.startswith("ROOST_")}
        async with running(folder, runtime=runtime, **settings) as server:
            yield json.dumps({"port": server.port, "key": server.key()})
    finally:
        await runtime.close()


async def main(kind: str, folder: Path, *rest: Path) -> None:
    log.configure_logging("warning")
    async with run_server(folder, *rest) if kind == "server" else run_cluster(folder) as line:
        print(line, flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], *map(Path, sys.argv[2:])))
