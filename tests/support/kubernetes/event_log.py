"""Events as the scheduler, kubelets and controllers write them."""

from hashlib import sha256
from uuid import uuid4

from tests.support.kubernetes.resources import Object
from tests.support.kubernetes.store import Store
from tests.support.kubernetes.writes import timestamp


def record_event(store: Store, item: Object, reason: str, message: str, *, source: str, node: str = "",
                 container: str = "", warning: bool = False) -> None:  # fmt: skip
    """Write an event about an object, or count up the one that says the same."""
    metadata = item["metadata"]
    namespace = metadata.get("namespace", "default")
    found = store.get("Namespace", "", namespace)
    if found is None or "deletionTimestamp" in found["metadata"]:
        return
    name = f"{metadata['name']}.{_digest(metadata['uid'], reason, message)}"
    if found := store.get("Event", namespace, name):
        store.put({**found, "count": found["count"] + 1, "lastTimestamp": timestamp()})
        return
    involved = {"kind": item["kind"], "name": metadata["name"], "uid": metadata["uid"]}
    involved |= {"apiVersion": item["apiVersion"], "resourceVersion": metadata["resourceVersion"]}
    involved |= {"namespace": namespace} if metadata.get("namespace") else {}
    involved |= {"fieldPath": f"spec.containers{{{container}}}"} if container else {}
    made = {"name": name, "namespace": namespace, "uid": str(uuid4()), "creationTimestamp": timestamp()}
    times = {"firstTimestamp": timestamp(), "lastTimestamp": timestamp(), "eventTime": None, "count": 1}
    origin = {"source": {"component": source} | ({"host": node} if node else {}), "reportingComponent": source}
    store.put({"apiVersion": "v1", "kind": "Event", "metadata": made, "involvedObject": involved, "reason": reason,
               "message": message, "type": "Warning" if warning else "Normal", **times, **origin,
               "reportingInstance": node})  # fmt: skip


def _digest(*parts: str) -> str:
    return sha256("\n".join(parts).encode()).hexdigest()[:16]
