"""The runtime of a cluster: a real one that the environment names, else a fake one whose pods are real wardens.

`make test-kubernetes` says how to name a real one. A test may do anything in its namespace.
"""

import asyncio
import base64
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from unittest import mock

from roost.drivers.runtime.contract import BRIDGE_PORT, PROGRAM_ENV, ContainerSpec, Runtime
from roost.drivers.runtime.docker.plan import WARDEN
from roost.drivers.runtime.kubernetes import plan
from roost.drivers.runtime.kubernetes.api import KubernetesApi
from roost.drivers.runtime.kubernetes.credentials import load_kubeconfig
from roost.drivers.runtime.kubernetes.driver import KubernetesRuntime
from roost.drivers.runtime.kubernetes.plan import ClusterOptions
from tests.conformance.bridged_runtimes import TlsFakeRuntime
from tests.support.kubernetes.cluster import ADMIN_TOKEN, FakeCluster, running_cluster
from tests.support.kubernetes.kubelet import ContainerExit, PodRun
from tests.support.kubernetes.store import Change

IMAGE = "TEST_KUBERNETES_IMAGE"
"""Image of the pods; with it, `KUBECONFIG` names a real cluster."""
SERVERS = "TEST_KUBERNETES_SERVERS"
"""Networks from which the tests open connections to pods; without them they use `pods/exec`."""
_FOLDER = "TEST_KUBERNETES_FOLDER"


def kubernetes(folder: Path) -> Runtime:
    folder.mkdir(parents=True, exist_ok=True)
    access = load_kubeconfig(Path(os.environ["KUBECONFIG"]))
    name = f"t{hashlib.sha256(str(folder).encode()).hexdigest()[:10]}"
    networks = os.environ.get(SERVERS, "").split()
    options = ClusterOptions(
        name=name,
        image=os.environ[IMAGE],
        storage_bytes=1 << 28,
        server_networks=networks,
        uses_exec=not networks,
        accepts_open_network=_FOLDER in os.environ,
    )
    return KubernetesRuntime(KubernetesApi(access, "0"), options, folder)


@asynccontextmanager
async def open_cluster(folder: Path) -> AsyncIterator[None]:
    """Let `kubernetes` find a cluster within the block."""
    if IMAGE in os.environ:
        yield
        return
    pods = folder / "pods"
    async with running_wardens(pods) as cluster:
        config = {
            "current-context": "fake",
            "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "admin", "namespace": "agents"}}],
            "clusters": [{"name": "fake", "cluster": {"server": cluster.url}}],
            "users": [{"name": "admin", "user": {"token": ADMIN_TOKEN}}],
        }
        (pods / "kubeconfig").write_text(json.dumps(config))
        fake = {"KUBECONFIG": str(pods / "kubeconfig"), IMAGE: "fake:1", SERVERS: "127.0.0.0/8", _FOLDER: str(pods)}
        with mock.patch.dict(os.environ, fake):
            yield


@asynccontextmanager
async def running_wardens(folder: Path) -> AsyncIterator[FakeCluster]:
    """Run a fake cluster with a namespace `agents`, whose pods are real wardens with their files in `folder`."""
    folder.mkdir(parents=True)
    async with running_cluster() as cluster:
        cluster.add_namespace("agents", {"pod-security.kubernetes.io/enforce": "restricted"})
        wardens = WardenPods(cluster, TlsFakeRuntime(folder), folder)
        try:
            yield cluster
        finally:
            await wardens.close()


def find_claim_folder(runtime: KubernetesRuntime, agent_id: str) -> Path:
    """Return the folder of a claim, which in a real cluster has to be one of this machine."""
    if _FOLDER in os.environ:
        return Path(os.environ[_FOLDER]) / "agents" / agent_id
    kubectl = ["kubectl", "get", "-o", "json"]
    claim = subprocess.run([*kubectl, "pvc", runtime._options.object_name(agent_id)], capture_output=True, check=False)
    if claim.returncode:
        return Path("/no-claim")
    volume = json.loads(claim.stdout)["spec"]["volumeName"]
    found = json.loads(subprocess.run([*kubectl, "pv", volume], capture_output=True, check=True).stdout)["spec"]
    return Path((found.get("hostPath") or found["local"])["path"])


class WardenPods:
    """Kubelet of a fake cluster: each pod is a real warden of a fake runtime, at the address of the pod."""

    def __init__(self, cluster: FakeCluster, runtime: TlsFakeRuntime, folder: Path) -> None:
        self._store, self._runtime, self._folder = cluster.store, runtime, folder
        cluster.kubelet.run_pod = self._run
        cluster.store.listeners.append(self._delete_files)

    async def close(self) -> None:
        for agent_id in await self._runtime.list_stored():
            await self._runtime.delete(agent_id)

    async def _run(self, run: PodRun) -> ContainerExit:
        agent_id = await self._start(run)
        listener = await asyncio.start_server(self._forward(agent_id), run.address, BRIDGE_PORT)
        try:
            while not run.stopping.is_set() and self._runtime.is_running(agent_id):
                with suppress(TimeoutError):
                    await asyncio.wait_for(run.stopping.wait(), 0.1)
        finally:
            listener.close()
            await asyncio.shield(self._runtime.stop(agent_id, grace=0.5))
            if not any("persistentVolumeClaim" in volume for volume in run.pod["spec"]["volumes"]):
                await asyncio.shield(self._runtime.delete(agent_id))
        return ContainerExit(0)

    async def _start(self, run: PodRun) -> str:
        """Start the warden of a pod; return its agent."""
        spec = run.pod["spec"]
        config: Mapping[str, Any] = json.loads(spec["containers"][0]["args"][0])
        agent_id = str(config["agent"])
        name = next(volume["secret"]["secretName"] for volume in spec["volumes"] if "secret" in volume)
        secret = self._store.get("Secret", run.pod["metadata"]["namespace"], name)
        assert secret is not None, "the pod waits for its secret"
        certificate = base64.b64decode(secret["data"][plan.CERTIFICATE]).decode()
        self._runtime.certificates[agent_id], self._runtime.limits[agent_id] = certificate, config["limits"]
        container = ContainerSpec(
            agent_id,
            env={key: value for key, value in config["env"].items() if PROGRAM_ENV.get(key) != value},
            files=self._read_files(run.pod),
            relays={int(port): relay for port, relay in config["relays"].items()},
            egress=config["egress"],
            delete_only=config["delete_only"],
        )
        await self._runtime.start(container)
        await self._runtime.bridges.drop(agent_id)  # the bridge of the server is the newest one then
        return agent_id

    def _read_files(self, pod: Mapping[str, Any]) -> Mapping[str, bytes]:
        """Return the files that are mounted from ConfigMaps, besides the warden's."""
        maps = {volume["name"]: volume["configMap"] for volume in pod["spec"]["volumes"] if "configMap" in volume}
        files: dict[str, bytes] = {}
        for mount in pod["spec"]["containers"][0]["volumeMounts"]:
            if mount["name"] in maps and mount["mountPath"] != WARDEN:
                mounted = maps[mount["name"]]
                found = self._store.get("ConfigMap", pod["metadata"]["namespace"], mounted["name"])
                assert found is not None, "the pod waits for its files"
                for item in mounted["items"]:
                    content = base64.b64decode(found["binaryData"][item["key"]])
                    files[f"{mount['mountPath']}/{item['path']}"] = content
        return files

    def _forward(self, agent_id: str) -> Any:
        async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                sock = await self._runtime.open_socket(agent_id)
            except OSError:  # the pod ends
                writer.close()
                return
            inner_reader, inner_writer = await asyncio.open_unix_connection(sock=sock)
            await asyncio.gather(_copy(reader, inner_writer), _copy(inner_reader, writer), return_exceptions=True)

        return forward

    def _delete_files(self, change: Change) -> None:
        if change.resource.kind == "PersistentVolumeClaim" and change.now is None and change.before is not None:
            agent_id = change.before.object["metadata"]["labels"][plan.AGENT]
            folder = self._folder / "agents" / agent_id
            subprocess.run(["chmod", "-R", "u+rwx", str(folder)], check=False)
            shutil.rmtree(folder, ignore_errors=True)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()
