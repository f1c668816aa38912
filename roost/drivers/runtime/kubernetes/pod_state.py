"""Why a pod does not run, as a person understands it, from its status and its events.

Conditions and reasons: https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from roost.core import clock
from roost.drivers.runtime.kubernetes import plan
from roost.drivers.runtime.kubernetes.errors import JsonObject, read_metadata, to_line

PULLING, UNMOUNTED = "The node loads the image", "Its files cannot be mounted"
_PULLS = frozenset({"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "RegistryUnavailable"})
_MOUNTS = frozenset({"FailedMount", "FailedAttachVolume", "FailedMapVolume"})
_PROGRESS = frozenset({"Pulled", "Created", "Started"})
_VERSION_DIGITS = 20
_WAITS = frozenset({"ContainerCreating", "PodInitializing", ""})


@dataclass(frozen=True)
class PodState:
    """What counts of a pod.

    phase: of Kubernetes. address: of the pod, "" before it has one; host: of its node. secret: with the certificate of
    its bridge, "" if it has none; maps: the ConfigMaps that it mounts. problem: why it does not run, "" if it does or
    will soon. is_final: whether it never will.
    """

    uid: str
    agent_id: str
    phase: str
    address: str
    node: str
    host: str
    secret: str
    maps: frozenset[str]
    started_at: str
    is_ready: bool
    is_deleted: bool
    delete_only: bool
    problem: str
    is_final: bool

    @property
    def age_seconds(self) -> float:
        """Time since the container runs, or since the pod exists."""
        return (clock.utc_now() - datetime.fromisoformat(self.started_at)).total_seconds()


def read_pod(item: JsonObject) -> PodState:
    """Return what counts of a pod. Raises KubernetesUnreachable, KeyError."""
    metadata, status = read_metadata(item), _part(item, "status")
    labels, containers = _part(metadata, "labels"), _parts(status, "containerStatuses")
    container = next((one for one in containers if one.get("name", plan.CONTAINER) == plan.CONTAINER), JsonObject())
    running = _part(_part(container, "state"), "running")
    phase = str(status.get("phase") or "Pending")
    volumes = _parts(_part(item, "spec"), "volumes")
    problem, is_final = _explain(status, container)
    return PodState(
        uid=str(metadata["uid"]),
        agent_id=str(labels.get(plan.AGENT) or ""),
        phase=phase,
        address=str(status.get("podIP") or ""),
        node=str(_part(item, "spec").get("nodeName") or ""),
        host=str(status.get("hostIP") or ""),
        secret=next((name for name in map(_secret_name, volumes) if name), ""),
        maps=frozenset(str(_part(one, "configMap").get("name")) for one in volumes if "configMap" in one),
        started_at=str(running.get("startedAt") or status.get("startTime") or metadata.get("creationTimestamp") or ""),
        is_ready=phase == "Running" and bool(running),
        is_deleted="deletionTimestamp" in metadata,
        delete_only=labels.get(plan.DELETE_ONLY) == "true",
        problem=problem,
        is_final=is_final,
    )


def explain_events(events: Sequence[JsonObject]) -> str:
    """Return what the newest of a pod's events says about a start that takes long, "" if none does."""
    for event in sorted(events, key=_event_time, reverse=True):
        reason, message = str(event.get("reason") or ""), to_line(str(event.get("message") or ""))
        if reason in _PROGRESS:
            return ""
        if reason == "Pulling":
            return f"{PULLING}: {message}"
        if reason in _MOUNTS:
            return f"{UNMOUNTED}: {message}"
        if reason == "FailedScheduling":
            return _explain_scheduling(message)
        if reason == "Failed" or reason.startswith("FailedCreatePod"):
            return f"The node cannot make its container: {message}"
    return ""


def _explain(status: JsonObject, container: JsonObject) -> tuple[str, bool]:
    """Return why a pod does not run, and whether it never will."""
    ended = _part(_part(container, "state"), "terminated")
    if ended:
        return _explain_end(ended), True
    if status.get("phase") == "Failed":
        verb = "The node evicted it" if status.get("reason") == "Evicted" else "It failed"
        return f"{verb}: {to_line(str(status.get('message') or status.get('reason') or 'no reason is known'))}", True
    return _explain_wait(container) or _explain_conditions(status), False


def _explain_wait(container: JsonObject) -> str:
    waiting = _part(_part(container, "state"), "waiting")
    reason = str(waiting.get("reason") or "")
    message = to_line(str(waiting.get("message") or reason))
    if reason in _PULLS:
        return f"Its image {container.get('image', '')} cannot be loaded: {message}"
    return "" if reason in _WAITS else f"The node cannot make its container: {message}"


def _explain_conditions(status: JsonObject) -> str:
    for found in _parts(status, "conditions"):
        if found.get("type") == "PodScheduled" and found.get("status") == "False":
            return _explain_scheduling(to_line(str(found.get("message") or found.get("reason") or "")))
    return ""


def _explain_scheduling(message: str) -> str:
    if "PersistentVolumeClaim" in message or "persistentvolumeclaim" in message:
        return f"The claim for its files has no volume: {message}"
    return f"No node has space for it: {message}"


def _explain_end(ended: JsonObject) -> str:
    if ended.get("reason") == "OOMKilled":
        return "It used more memory than its limit and was ended"
    message = to_line(str(ended.get("message") or ended.get("reason") or ""))
    return f"Its container ended with code {ended.get('exitCode')}: {message}"


def _secret_name(volume: JsonObject) -> str:
    return str(_part(volume, "secret").get("secretName") or "") if volume.get("name") == plan.BRIDGE_VOLUME else ""


def _part(item: JsonObject, name: str) -> JsonObject:
    """Return an object in another one, empty if it is missing."""
    found: object = item.get(name)
    return cast("JsonObject", found) if isinstance(found, dict) else {}


def _parts(item: JsonObject, name: str) -> Sequence[JsonObject]:
    """Return the objects of a list in another one."""
    found: object = item.get(name)
    entries = cast("list[object]", found) if isinstance(found, list) else []
    return [cast("JsonObject", entry) for entry in entries if isinstance(entry, dict)]


def _event_time(event: JsonObject) -> tuple[str, int]:
    """Return when an event was last seen; those of one second are in the order in which they were written."""
    metadata = _part(event, "metadata")
    found = event.get("lastTimestamp") or event.get("eventTime") or metadata.get("creationTimestamp")
    version = str(metadata.get("resourceVersion"))
    return str(found or ""), int(version) if version.isdecimal() and len(version) < _VERSION_DIGITS else 0
