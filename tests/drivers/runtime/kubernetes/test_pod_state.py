"""Statuses of pods as a kubelet of Kubernetes 1.36 wrote them, and the reasons that people read."""

from typing import Any

import pytest

from roost.drivers.runtime.kubernetes import plan
from roost.drivers.runtime.kubernetes.errors import KubernetesUnreachable
from roost.drivers.runtime.kubernetes.pod_state import explain_events, read_pod


def pod(status: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    labels = {plan.AGENT: "ada", plan.DELETE_ONLY: "false"}
    return {"metadata": {"name": "roost-ada", "uid": "u1", "labels": labels, **metadata}, "status": status}


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    state = {"waiting": {"reason": reason, **({"message": message} if message else {})}}
    return {"phase": "Pending", "containerStatuses": [{"image": "roost-agent:1", "state": state}]}


def ended(**terminated: Any) -> dict[str, Any]:
    return {"phase": "Failed", "containerStatuses": [{"state": {"terminated": terminated}}]}


def unscheduled(message: str) -> dict[str, Any]:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return {"phase": "Pending", "conditions": [condition]}


@pytest.mark.parametrize(
    ("status", "problem", "is_final"),
    [
        ({}, "", False),
        (waiting("ContainerCreating"), "", False),
        (waiting("ErrImagePull", "no such host"), "Its image roost-agent:1 cannot be loaded: no such host", False),
        (waiting("ImagePullBackOff"), "Its image roost-agent:1 cannot be loaded: ImagePullBackOff", False),
        (
            waiting("CreateContainerConfigError", 'secret "x" not found'),
            'The node cannot make its container: secret "x" not found',
            False,
        ),
        (
            unscheduled("0/1 nodes are available: 1 Insufficient cpu."),
            "No node has space for it: 0/1 nodes are available: 1 Insufficient cpu.",
            False,
        ),
        (
            unscheduled("pod has unbound immediate PersistentVolumeClaims."),
            "The claim for its files has no volume: pod has unbound immediate PersistentVolumeClaims.",
            False,
        ),
        (ended(reason="OOMKilled", exitCode=137), "It used more memory than its limit and was ended", True),
        (ended(reason="Error", exitCode=3), "Its container ended with code 3: Error", True),
        (
            {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory.\nUsage"},
            "The node evicted it: The node was low on resource: memory. Usage",
            True,
        ),
        ({"phase": "Failed"}, "It failed: no reason is known", True),
    ],
)
def test_a_status_has_a_reason_for_people(status: dict[str, Any], problem: str, is_final: bool) -> None:
    found = read_pod(pod(status))
    assert (found.problem, found.is_final, found.is_ready) == (problem, is_final, False)


def test_a_running_pod_has_address_and_start() -> None:
    state = {"running": {"startedAt": "2026-01-02T03:04:05Z"}}
    status = {"phase": "Running", "podIP": "10.0.0.7", "containerStatuses": [{"state": state}]}
    found = read_pod(pod(status, deletionTimestamp="2026-01-02T03:05:00Z"))
    assert (found.address, found.started_at, found.agent_id) == ("10.0.0.7", "2026-01-02T03:04:05Z", "ada")
    assert (found.is_ready, found.is_deleted, found.delete_only, found.problem) == (True, True, False, "")


@pytest.mark.parametrize("status", [[], {"containerStatuses": {}}, {"containerStatuses": [1], "conditions": ["x"]}])
def test_a_malformed_status_is_an_unknown_one(status: Any) -> None:
    assert read_pod(pod(status)).phase == "Pending"
    with pytest.raises(KubernetesUnreachable):
        read_pod({"status": status})


@pytest.mark.parametrize(
    ("reason", "message", "told"),
    [
        ("Pulling", 'Pulling image "a"', 'The node loads the image: Pulling image "a"'),
        ("FailedMount", "timed out", "Its files cannot be mounted: timed out"),
        ("FailedScheduling", "0/3 nodes", "No node has space for it: 0/3 nodes"),
        ("FailedCreatePodContainer", "no network", "The node cannot make its container: no network"),
        ("Started", "Started container", ""),
    ],
)
def test_the_newest_event_tells_what_a_start_waits_for(reason: str, message: str, told: str) -> None:
    newest = {"reason": reason, "message": message, "lastTimestamp": "2026-01-01T00:00:02Z"}
    older = {"reason": "Scheduled", "message": "to node-1", "eventTime": "2026-01-01T00:00:01.000000Z"}
    assert explain_events([newest, {**older, "lastTimestamp": None}]) == told
    assert explain_events([]) == ""
