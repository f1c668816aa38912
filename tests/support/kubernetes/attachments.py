"""Attachments of volumes to nodes: a volume stays attached to a lost node until that is known to be out of service."""

from hashlib import sha256
from uuid import uuid4

from tests.support.kubernetes.resources import Object
from tests.support.kubernetes.store import Change, Store
from tests.support.kubernetes.writes import timestamp


class VolumeAttachments:
    """Attaches the volumes of pods when these are bound to nodes; `lost` names the nodes that cannot detach."""

    def __init__(self, store: Store, lost: set[str]) -> None:
        self._store, self._lost = store, lost
        store.listeners.append(self._handle)

    def detach_all(self, node: str) -> None:
        """Detach what no pod of the node uses any more, as after its return, its end, or the out-of-service taint."""
        used = {name for pod in self._store.objects("Pod") if pod["spec"].get("nodeName") == node
                for name in self._volumes_of(pod)}  # fmt: skip
        for one in self._store.objects("VolumeAttachment"):
            if one["spec"]["nodeName"] == node and one["spec"]["source"]["persistentVolumeName"] not in used:
                self._store.remove(one)

    def _handle(self, change: Change) -> None:
        if change.resource.kind != "Pod":
            return
        now, before = (one.object if one else None for one in (change.now, change.before))
        if now and now["spec"].get("nodeName") and not (before and before["spec"].get("nodeName")):
            for volume in self._volumes_of(now):
                self._attach(volume, now["spec"]["nodeName"])
        elif not now and before and before["spec"].get("nodeName", "") not in {"", *self._lost}:
            for volume in self._volumes_of(before):
                name = _name(volume, before["spec"]["nodeName"])
                if found := self._store.get("VolumeAttachment", "", name):
                    self._store.remove(found)

    def _volumes_of(self, pod: Object) -> list[str]:
        claims = [one["persistentVolumeClaim"]["claimName"] for one in pod["spec"].get("volumes", ())
                  if "persistentVolumeClaim" in one]  # fmt: skip
        found = (self._store.get("PersistentVolumeClaim", pod["metadata"]["namespace"], name) for name in claims)
        return [one["spec"]["volumeName"] for one in found if one and one["spec"].get("volumeName")]

    def _attach(self, volume: str, node: str) -> None:
        name = _name(volume, node)
        if self._store.get("VolumeAttachment", "", name) is None:
            metadata = {"name": name, "uid": str(uuid4()), "creationTimestamp": timestamp()}
            spec = {"attacher": "fake.csi.k8s.io", "nodeName": node, "source": {"persistentVolumeName": volume}}
            self._store.put({"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": metadata,
                             "spec": spec, "status": {"attached": True}})  # fmt: skip


def _name(volume: str, node: str) -> str:
    return f"csi-{sha256(f'{volume}/{node}'.encode()).hexdigest()}"
