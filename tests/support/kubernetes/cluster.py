"""The fake cluster: an API server with a scheduler, kubelets and controllers, all of which a test controls.

The answers and messages are those of Kubernetes 1.36, to which the same requests were sent. What it does not have:
server-side printing, Protocol Buffers of most kinds, SPDY, custom resources but those of `custom_resources.yaml`, and
controllers of workloads.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import yaml

from tests.support.kubernetes.access import AccessControl, built_in_roles
from tests.support.kubernetes.admission import Admission
from tests.support.kubernetes.api import Api
from tests.support.kubernetes.attachments import VolumeAttachments
from tests.support.kubernetes.event_log import record_event
from tests.support.kubernetes.garbage import GarbageCollector
from tests.support.kubernetes.http_server import HttpServer
from tests.support.kubernetes.kubelet import Kubelet
from tests.support.kubernetes.lists import Lister
from tests.support.kubernetes.pod_requests import PodRequests
from tests.support.kubernetes.resources import BY_KIND, CUSTOM, Object
from tests.support.kubernetes.scheduler import Scheduler, tolerates
from tests.support.kubernetes.store import Change, Store
from tests.support.kubernetes.writes import WriteOptions, Writer, make_suffix, timestamp

ADMIN_TOKEN = "admin-token"
_UNREACHABLE = "node.kubernetes.io/unreachable"
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"


class FakeCluster:
    """A cluster in this process; `url` is its API server, `ADMIN_TOKEN` may do everything."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.store = Store()
        self.access = AccessControl(self.store)
        self.access.tokens[ADMIN_TOKEN] = ("kubernetes-admin", ("system:masters",))
        self.admission = Admission(self.store, make_suffix)
        self.writer = Writer(self.store, self.admission)
        self.lister = Lister(self.store)
        self.pods = PodRequests(self.store, self.writer, self.access)
        self.api = Api(self.store, self.access, self.writer, self.lister, self.pods)
        self.server = HttpServer(self.api.handle, tls)
        GarbageCollector(self.store, self.writer)
        self.scheduler = Scheduler(self.store, self.writer)
        self.kubelet = Kubelet(self.store, self.writer)
        self.attachments = VolumeAttachments(self.store, self.kubelet.lost)
        self.store.listeners.append(self._handle)

    @property
    def url(self) -> str:
        return self.server.url

    def create(self, item: Object) -> Object:
        """Create an object as an administrator does, without a request. Raises ApiError."""
        resource = BY_KIND[item["kind"]]
        namespace = item["metadata"].get("namespace", "default") if resource.namespaced else ""
        return self.writer.create(resource, namespace, item, WriteOptions("test", strictness="Strict")).item

    def load(self, documents: str, namespace: str = "default") -> list[Object]:
        """Create the objects of a YAML text."""
        found: list[Any] = [one for one in yaml.safe_load_all(documents) if one]
        for one in found:
            if BY_KIND[one["kind"]].namespaced:
                one["metadata"].setdefault("namespace", namespace)
        return [self.create(one) for one in found]

    def add_namespace(self, name: str, labels: dict[str, str] | None = None) -> Object:
        """Create a namespace."""
        return self.create(
            {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name, "labels": labels or {}}}
        )

    def define_custom_resources(self) -> None:
        """Create all CustomResourceDefinitions that the fake knows."""
        for one in CUSTOM.values():
            self.create(one)

    def add_user(self, token: str, user: str, *groups: str) -> None:
        """Let a bearer token authenticate a user, such as `system:serviceaccount:<namespace>:<name>`."""
        self.access.tokens[token] = (user, groups)

    def add_node(
        self, name: str, *, cpu: str = "4", memory: str = "8Gi", pods: str = "110", address: str = "127.0.0.1"
    ) -> Object:
        """Register a node that is ready."""
        capacity = {"cpu": cpu, "memory": memory, "pods": pods, "ephemeral-storage": "100Gi"}
        conditions = [{"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": timestamp(),
                       "message": "kubelet is posting ready status", "lastTransitionTime": timestamp()}]  # fmt: skip
        system = {"kernelVersion": "6.1.0", "osImage": "Debian GNU/Linux 12", "operatingSystem": "linux"}
        versions = {
            "containerRuntimeVersion": "containerd://2.1.0",
            "kubeletVersion": "v1.36.0",
            "kubeProxyVersion": "",
        }
        info = {"machineID": "", "systemUUID": "", "bootID": "", "architecture": "amd64", **system, **versions}
        addresses = [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}]
        status = {"capacity": capacity, "allocatable": capacity, "conditions": conditions, "nodeInfo": info,
                  "addresses": addresses}  # fmt: skip
        labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
        metadata = {"name": name, "labels": labels}
        return self.create({"kind": "Node", "apiVersion": "v1", "metadata": metadata, "spec": {}, "status": status})

    def lose_node(self, name: str) -> None:
        """Cut a node off: it is not ready and unreachable, its pods are not ready, its kubelet does nothing more."""
        self.kubelet.lost.add(name)
        self._set_node(name, "Unknown", [{"key": _UNREACHABLE, "effect": effect, "timeAdded": timestamp()}
                                         for effect in ("NoSchedule", "NoExecute")])  # fmt: skip
        for pod in self._pods_on(name):
            self.writer.change(pod, _without_readiness)
            record_event(self.store, pod, "NodeNotReady", "Node is not ready", source="node-controller", warning=True)

    def evict_lost_pods(self, name: str) -> None:
        """Delete the pods of a lost node that do not tolerate it, as after 300 s; they stay `Terminating`."""
        for pod in self._pods_on(name):
            lasting = (one for one in pod["spec"].get("tolerations", ()) if one.get("tolerationSeconds") is None)
            if not any(tolerates(one, {"key": _UNREACHABLE, "effect": "NoExecute"}) for one in lasting):
                condition = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager",
                             "lastProbeTime": None, "lastTransitionTime": timestamp(),
                             "message": "Taint manager: deleting due to NoExecute taint"}  # fmt: skip
                marked = self._add_condition(pod, condition)
                self._delete(marked or pod, None)
                place = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
                message = f"Marking for deletion Pod {place}"
                record_event(self.store, pod, "TaintManagerEviction", message, source="taint-eviction-controller")

    def recover_node(self, name: str) -> None:
        """Let a lost node come back; its kubelet ends the pods that were deleted."""
        self._set_node(name, "True", [])
        self.kubelet.recover(name)
        self.attachments.detach_all(name)

    def evict_pod(self, namespace: str, name: str, message: str) -> None:
        """Fail a pod with the reason `Evicted`, as a kubelet under pressure does."""
        pod = self.store.get("Pod", namespace, name)
        assert pod
        self.kubelet.end_pod(pod["metadata"]["uid"])
        self.writer.change(pod, lambda live: {
            **live, "status": {**live["status"], "phase": "Failed", "reason": "Evicted", "message": message},
        })  # fmt: skip
        record_event(self.store, pod, "Evicted", message, source="kubelet", node=pod["spec"]["nodeName"], warning=True)

    async def restart(self, seconds: float = 0) -> None:
        """Restart the API server: all connections end, and new ones are refused for that long."""
        await self.server.stop()
        await asyncio.sleep(seconds)
        await self.server.start()

    def _pods_on(self, node: str) -> list[Object]:
        return [pod for pod in self.store.objects("Pod") if pod["spec"].get("nodeName") == node]

    def _set_node(self, name: str, ready: str, taints: list[Object]) -> None:
        node = self.store.get("Node", "", name)
        assert node
        reason = ("KubeletReady", "kubelet is posting ready status") if ready == "True" else (
            "NodeStatusUnknown", "Kubelet stopped posting node status.")  # fmt: skip

        def edit(live: Object) -> Object:
            conditions = [{**one, "status": ready, "reason": reason[0], "message": reason[1],
                           "lastTransitionTime": timestamp()} for one in live["status"]["conditions"]]  # fmt: skip
            kept = [one for one in live["spec"].get("taints", ()) if one["key"] != _UNREACHABLE]
            spec = {key: value for key, value in live["spec"].items() if key != "taints"}
            spec |= {"taints": [*kept, *taints]} if kept or taints else {}
            return {**live, "spec": spec, "status": {**live["status"], "conditions": conditions}}

        self.writer.change(node, edit)

    def _add_condition(self, pod: Object, condition: Object) -> Object | None:
        return self.writer.change(pod, lambda live: {
            **live, "status": {**live["status"], "conditions": [*live["status"].get("conditions", ()), condition]},
        })  # fmt: skip

    def _delete(self, pod: Object, grace: int | None) -> None:
        key = (pod["metadata"]["namespace"], pod["metadata"]["name"])
        options: Object = {"preconditions": {"uid": pod["metadata"]["uid"]}}
        options |= {} if grace is None else {"gracePeriodSeconds": grace}
        self.writer.delete(BY_KIND["Pod"], key, options)

    def _handle(self, change: Change) -> None:
        """Play the small controllers: default service accounts, protection of claims, pods of ended nodes."""
        name, now = change.key[1], change.now and change.now.object
        match change.resource.kind:
            case "Namespace" if now and not change.before:
                for kind, account in (("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt")):
                    metadata = {
                        "name": account,
                        "namespace": name,
                        "uid": str(uuid4()),
                        "creationTimestamp": timestamp(),
                    }
                    data = {"data": {"ca.crt": ""}} if kind == "ConfigMap" else {}
                    self.store.put({"apiVersion": "v1", "kind": kind, "metadata": metadata, **data})
            case "CustomResourceDefinition" if now and now["spec"] != CUSTOM.get(name, {}).get("spec"):
                raise AssertionError(f"the fake has no custom resource {name} with this definition")
            case "CustomResourceDefinition" if change.before and not now:
                for one in self.store.objects(change.before.object["spec"]["names"]["kind"]):
                    self.store.remove(one)
            case "Node" if not now:
                self._collect_pods(name, force=True)
            case "Node" if now and any(one["key"] == OUT_OF_SERVICE for one in now["spec"].get("taints", ())):
                if name in self.kubelet.lost:
                    self._collect_pods(name, force=False)
            case "PersistentVolumeClaim" if now and "deletionTimestamp" in now["metadata"]:
                self._release_claim(*change.key)
            case "Pod" if change.before and not now:
                for volume in change.before.object["spec"].get("volumes", ()):
                    if claim := volume.get("persistentVolumeClaim"):
                        self._release_claim(change.key[0], claim["claimName"])
            case _:
                pass

    def _collect_pods(self, node: str, *, force: bool) -> None:
        """Delete the pods of a node that is gone or out of service at once, as the pod garbage collector does."""
        for pod in self._pods_on(node):
            if force or "deletionTimestamp" in pod["metadata"]:
                self.kubelet.end_pod(pod["metadata"]["uid"])
                self._delete(pod, 0)
        self.attachments.detach_all(node)

    def _release_claim(self, namespace: str, name: str) -> None:
        """Let a deleted claim go when no pod uses it any more, and its volume with it."""
        claim = self.store.get("PersistentVolumeClaim", namespace, name)
        if claim and "deletionTimestamp" in claim["metadata"] and not self._is_used(claim):
            self.writer.change(claim, _without_protection)
            if volume := self.store.get("PersistentVolume", "", claim["spec"].get("volumeName", "")):
                self.store.remove(volume)

    def _is_used(self, claim: Object) -> bool:
        name = claim["metadata"]["name"]
        return any(
            volume.get("persistentVolumeClaim", {}).get("claimName") == name
            for pod in self.store.objects("Pod", claim["metadata"]["namespace"])
            if pod["status"].get("phase") not in {"Succeeded", "Failed"}
            for volume in pod["spec"].get("volumes", ())
        )


def _without_readiness(pod: Object) -> Object:
    now = {"status": "False", "lastTransitionTime": timestamp(), "reason": "NodeNotReady"}
    conditions = [{**one, **now} if one["type"] == "Ready" else one for one in pod["status"].get("conditions", ())]
    return {**pod, "status": {**pod["status"], "conditions": conditions}}


def _without_protection(claim: Object) -> Object:
    finalizers = [one for one in claim["metadata"].get("finalizers", ()) if one != "kubernetes.io/pvc-protection"]
    metadata = {key: value for key, value in claim["metadata"].items() if key != "finalizers"}
    return {**claim, "metadata": {**metadata, **({"finalizers": finalizers} if finalizers else {})}}


@dataclass(eq=False)
class FakeFailed(AssertionError):  # noqa: N818 - what it is
    """The fake itself has failed while it answered; these are its errors."""

    errors: list[Exception]


@asynccontextmanager
async def running_cluster(*, nodes: int = 1, tls: ssl.SSLContext | None = None) -> AsyncIterator[FakeCluster]:
    """Run a cluster with that many nodes and the namespaces `default` and `kube-system`.

    Raises FakeFailed at the end if an answer was not as the published OpenAPI has it.
    """
    cluster = FakeCluster(tls)
    for namespace in ("default", "kube-system"):
        cluster.add_namespace(namespace)
    for role in built_in_roles():
        cluster.create(role)
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"}
    cluster.create({"kind": "StorageClass", "apiVersion": "storage.k8s.io/v1", "provisioner": "fake.csi.k8s.io",
                    "metadata": {"name": "standard", "annotations": annotations},
                    "volumeBindingMode": "WaitForFirstConsumer"})  # fmt: skip
    for number in range(1, nodes + 1):
        cluster.add_node(f"node-{number}")
    await cluster.server.start()
    try:
        yield cluster
    finally:
        await cluster.server.stop()
        await cluster.kubelet.stop()
    if cluster.api.failures:
        raise FakeFailed(cluster.api.failures)
