"""A scheduler and a volume binder: pods go to nodes where they fit, claims become bound."""

import asyncio
from decimal import Decimal
from uuid import uuid4

from tests.support.kubernetes.event_log import record_event
from tests.support.kubernetes.quantities import parse_quantity, pod_requests
from tests.support.kubernetes.resources import Object
from tests.support.kubernetes.store import Change, Store
from tests.support.kubernetes.writes import Writer, timestamp

Totals = dict[str, Decimal]


class Scheduler:
    """Binds pending pods when pods, nodes or claims change, unless `paused`; claims when `provisions` is set."""

    def __init__(self, store: Store, writer: Writer) -> None:
        self.paused = False
        self.provisions = True
        self._store, self._writer = store, writer
        self._pending: dict[tuple[str, str], None] = {}
        self._unbound: dict[tuple[str, str], None] = {}
        self._used: dict[str, Totals] = {}
        self._counted: dict[str, str] = {}
        self._running: asyncio.TimerHandle | asyncio.Handle | None = None
        store.listeners.append(self._handle)

    def resume(self) -> None:
        """Schedule again after a pause."""
        self.paused = False
        self._wake()

    def _handle(self, change: Change) -> None:
        if change.resource.kind == "Pod":
            self._count(change)
            if change.now and not change.now.object["spec"].get("nodeName"):
                self._pending[change.key] = None
                self._wake()
            else:
                self._pending.pop(change.key, None)
                if not change.now:
                    self._wake()
        elif change.resource.kind in {"Node", "PersistentVolumeClaim", "StorageClass"}:
            if change.resource.kind == "PersistentVolumeClaim":
                self._unbound.pop(change.key, None)
                if change.now and change.now.object["status"].get("phase") == "Pending":
                    self._unbound[change.key] = None
            self._wake()

    def _count(self, change: Change) -> None:
        """Keep the sums of what the pods of each node ask for."""
        item = (change.now or change.before).object  # type: ignore[union-attr]
        uid, node = item["metadata"]["uid"], item["spec"].get("nodeName", "")
        ended = change.now is None or item["status"].get("phase") in {"Succeeded", "Failed"}
        if node and not ended and uid not in self._counted:
            self._counted[uid] = node
            self._add(node, item, 1)
        elif ended and (counted := self._counted.pop(uid, None)):
            self._add(counted, item, -1)

    def _add(self, node: str, item: Object, sign: int) -> None:
        used = self._used.setdefault(node, {})
        for name, number in {**pod_requests(item["spec"]), "pods": Decimal(1)}.items():
            used[name] = used.get(name, Decimal(0)) + sign * number

    def _wake(self) -> None:
        if self._running is None:
            self._running = asyncio.get_running_loop().call_soon(self._schedule_all)

    def _schedule_all(self) -> None:
        self._running = None
        if self.paused:
            return
        for key in list(self._unbound) if self.provisions else ():
            claim = self._store.get("PersistentVolumeClaim", *key)
            if claim and self._binding_mode(claim) == "Immediate":
                self._bind_claim(claim)
        nodes = self._store.objects("Node")
        for key in list(self._pending):
            pod = self._store.get("Pod", *key)
            if pod and "deletionTimestamp" not in pod["metadata"]:
                self._schedule(pod, nodes)

    def _schedule(self, pod: Object, nodes: list[Object]) -> None:
        claims, reason = self._find_claims(pod)
        reasons: dict[str, int] = {}
        for node in nodes if not reason else ():
            if why := self._refusal(pod, node):
                reasons[why] = reasons.get(why, 0) + 1
                continue
            for claim in claims:
                if claim["status"].get("phase") == "Pending":
                    if not self.provisions:
                        return
                    self._bind_claim(claim)
            self._bind(pod, node["metadata"]["name"])
            return
        self._refuse(pod, _explain(len(nodes), reason, reasons))

    def _find_claims(self, pod: Object) -> tuple[list[Object], str]:
        claims: list[Object] = []
        for volume in pod["spec"].get("volumes", ()):
            if name := volume.get("persistentVolumeClaim", {}).get("claimName"):
                claim = self._store.get("PersistentVolumeClaim", pod["metadata"]["namespace"], name)
                if claim is None:
                    return [], f'persistentvolumeclaim "{name}" not found. not found'
                if "deletionTimestamp" in claim["metadata"]:
                    return [], f'persistentvolumeclaim "{name}" is being deleted'
                if claim["status"].get("phase") == "Pending" and self._binding_mode(claim) != "WaitForFirstConsumer":
                    return [], "pod has unbound immediate PersistentVolumeClaims"
                claims.append(claim)
        return claims, ""

    def _binding_mode(self, claim: Object) -> str:
        name = claim["spec"].get("storageClassName")
        found = self._store.get("StorageClass", "", name) if name else None
        return found["volumeBindingMode"] if found else ""

    def _refusal(self, pod: Object, node: Object) -> str:
        spec = pod["spec"]
        labels = node["metadata"].get("labels", {})
        if any(labels.get(key) != value for key, value in spec.get("nodeSelector", {}).items()):
            return "node(s) didn't match Pod's node affinity/selector"
        if node["spec"].get("unschedulable"):
            return "node(s) were unschedulable"
        for taint in node["spec"].get("taints", ()):
            if taint["effect"] != "PreferNoSchedule" and not any(
                tolerates(one, taint) for one in spec.get("tolerations", ())
            ):
                return f"node(s) had untolerated taint(s) {{{taint['key']}: {taint.get('value', '')}}}"
        used = self._used.get(node["metadata"]["name"], {})
        allocatable = node["status"].get("allocatable", {})
        for name, number in {"pods": Decimal(1), **pod_requests(spec)}.items():
            if used.get(name, Decimal(0)) + number > parse_quantity(allocatable.get(name, "0")):
                return "Too many pods" if name == "pods" else f"Insufficient {name}"
        return ""

    def _bind(self, pod: Object, node: str) -> None:
        condition = _condition("True")

        def assign(live: Object) -> Object:
            status = {**live["status"], "conditions": [condition]}
            return {**live, "spec": {**live["spec"], "nodeName": node}, "status": status}

        self._pending.pop((pod["metadata"]["namespace"], pod["metadata"]["name"]), None)
        if bound := self._writer.change(pod, assign):
            place = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
            message = f"Successfully assigned {place} to {node}"
            record_event(self._store, bound, "Scheduled", message, source="default-scheduler")

    def _refuse(self, pod: Object, message: str) -> None:
        condition = {**_condition("False"), "reason": "Unschedulable", "message": message, "observedGeneration": 1}
        if any(one.get("message") == message for one in pod["status"].get("conditions", ())):
            return
        refused = self._writer.change(
            pod, lambda live: {**live, "status": {**live["status"], "conditions": [condition]}}
        )
        if refused:
            record_event(self._store, refused, "FailedScheduling", message, source="default-scheduler", warning=True)

    def _bind_claim(self, claim: Object) -> None:
        name = f"pvc-{claim['metadata']['uid']}"
        spec = claim["spec"]
        capacity = {"storage": spec["resources"]["requests"]["storage"]}
        reference = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": claim["metadata"]["namespace"],
                     "name": claim["metadata"]["name"], "uid": claim["metadata"]["uid"]}  # fmt: skip
        metadata = {"name": name, "uid": str(uuid4()), "creationTimestamp": timestamp(),
                    "finalizers": ["kubernetes.io/pv-protection"]}  # fmt: skip
        source = {"csi": {"driver": "fake.csi.k8s.io", "volumeHandle": name}}
        shared = {"accessModes": spec["accessModes"], "capacity": capacity}
        shown = {"persistentVolumeReclaimPolicy": "Delete", "volumeMode": "Filesystem"}
        volume = {**shared, **shown, "claimRef": reference,
                  "storageClassName": spec.get("storageClassName", ""), **source}  # fmt: skip
        self._store.put({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": volume,
                         "status": {"phase": "Bound"}})  # fmt: skip
        self._writer.change(claim, lambda live: {
            **live, "spec": {**live["spec"], "volumeName": name}, "status": {"phase": "Bound", **shared},
        })  # fmt: skip


def tolerates(toleration: Object, taint: Object) -> bool:
    """Return whether a toleration lets a pod onto a node with a taint."""
    if toleration.get("effect") not in {None, "", taint["effect"]}:
        return False
    if not toleration.get("key"):
        return toleration.get("operator") == "Exists"
    if toleration["key"] != taint["key"]:
        return False
    return toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", "")


def _explain(total: int, reason: str, reasons: dict[str, int]) -> str:
    """Return why no node fits: one reason for all, or reasons with their numbers of nodes."""
    if not total:
        return "no nodes available to schedule pods"
    if reason:
        return f"0/{total} nodes are available: {reason}"
    listed = ", ".join(sorted(f"{count} {why}" for why, count in reasons.items()))
    preemption = f"preemption: 0/{total} nodes are available: {total} Preemption is not helpful for scheduling."
    return f"0/{total} nodes are available: {listed}. no new claims to deallocate, {preemption}"


def _condition(status: str) -> Object:
    return {"type": "PodScheduled", "status": status, "lastProbeTime": None, "lastTransitionTime": timestamp()}
