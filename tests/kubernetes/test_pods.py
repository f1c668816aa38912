"""The life of pods: scheduling, running, failing, ending, and commands in them."""

import asyncio
import json
import re
from contextlib import suppress

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosedOK, InvalidStatus

from tests.kubernetes.client import KubernetesClient, Object, pod
from tests.support.kubernetes.cluster import OUT_OF_SERVICE, FakeCluster
from tests.support.kubernetes.kubelet import OUT_OF_MEMORY, ContainerExit, PodRun

MERGE = "application/merge-patch+json"


def is_running(item: Object) -> bool:
    return item["status"].get("phase") == "Running"


def waiting_reason(item: Object) -> str:
    statuses = item["status"].get("containerStatuses", [{"state": {}}])
    return statuses[0]["state"].get("waiting", {}).get("reason", "")


async def start(api: KubernetesClient, name: str = "one", **spec: object) -> Object:
    await api.create(api.path("pods"), pod(name, **spec))
    return await api.wait(api.path("pods", name), is_running)


async def reasons(api: KubernetesClient, name: str) -> list[str]:
    found = await api.get(api.path("events"), fieldSelector=f"involvedObject.name={name}")
    return [one["reason"] for one in found["items"]]


async def drain(socket: ClientConnection) -> dict[int, bytes]:
    """Return what each channel has sent until the server closed."""
    found: dict[int, bytes] = {}
    with suppress(ConnectionClosedOK):
        async with asyncio.timeout(30):
            while True:
                message = await socket.recv()
                assert isinstance(message, bytes)
                found[message[0]] = found.get(message[0], b"") + message[1:]
    return found


async def test_pod_runs_with_the_status_of_a_kubelet(api: KubernetesClient) -> None:
    found = await start(api)
    status, container = found["status"], found["status"]["containerStatuses"][0]
    assert found["spec"]["nodeName"]
    assert {one["type"]: one["status"] for one in status["conditions"]} == dict.fromkeys(
        ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"), "True"
    )
    assert status["podIPs"] == [{"ip": status["podIP"]}]
    assert status["qosClass"] == "BestEffort"
    assert container["ready"]
    assert container["restartCount"] == 0
    assert "startedAt" in container["state"]["running"]
    assert {"Scheduled", "Pulled", "Created", "Started"} <= set(await reasons(api, "one"))


async def test_deleted_pod_stays_until_its_kubelet_ended_it(api: KubernetesClient) -> None:
    made = await start(api)
    path = api.path("pods", "one")
    ending = (await api.request("DELETE", path, {"gracePeriodSeconds": 2})).json()
    assert ending["metadata"]["deletionGracePeriodSeconds"] == 2
    assert ending["metadata"]["uid"] == made["metadata"]["uid"]
    assert ending["metadata"]["generation"] == 2
    again = (await api.request("DELETE", path, {"gracePeriodSeconds": 20})).json()
    assert again["metadata"].get("deletionGracePeriodSeconds", 2) == 2
    await api.wait_gone(path)


async def test_pod_that_fits_nowhere_is_deleted_at_once(api: KubernetesClient) -> None:
    await api.create(api.path("pods"), pod("one", nodeSelector={"no": "node"}))
    path = api.path("pods", "one")
    found = await api.wait(path, lambda item: item["status"].get("conditions"))
    condition = found["status"]["conditions"][0]
    assert (condition["type"], condition["status"], condition["reason"]) == ("PodScheduled", "False", "Unschedulable")
    why = r"0/(\d+) nodes are available: \1 node\(s\) didn't match Pod's node affinity/selector\. "
    assert re.match(why, condition["message"])
    assert (await api.request("DELETE", path)).status_code == 200
    assert (await api.request("GET", path)).status_code == 404


async def test_claim_is_bound_by_its_first_pod(api: KubernetesClient) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    await api.create(api.path("persistentvolumeclaims"), {"metadata": {"name": "data"}, "spec": spec})
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    await start(api, volumes=[volume])
    path = api.path("persistentvolumeclaims", "data")
    claim = await api.get(path)
    assert (claim["status"]["phase"], claim["status"]["capacity"]) == ("Bound", {"storage": "1Gi"})
    await api.request("DELETE", path)
    assert "deletionTimestamp" in (await api.get(path))["metadata"]
    await api.request("DELETE", api.path("pods", "one"))
    await api.wait_gone(path)


@pytest.mark.parametrize("protocol", ["v4", "v5"])
async def test_exec_carries_output_and_exit_code(api: KubernetesClient, protocol: str) -> None:
    await start(api)
    async with api.exec("one", "sh", "-c", "echo out; echo err >&2; exit 3", protocol=protocol) as socket:
        found = await drain(socket)
    assert (found[1], found[2]) == (b"out\n", b"err\n")
    status = json.loads(found[3])
    assert (status["status"], status["reason"]) == ("Failure", "NonZeroExitCode")
    assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "3"}]
    async with api.exec("one", "true", protocol=protocol) as socket:
        assert json.loads((await drain(socket))[3]) == {"metadata": {}, "status": "Success"}


async def test_exec_closes_its_input_by_a_channel(api: KubernetesClient) -> None:
    await start(api)
    async with api.exec("one", "cat", stdin="true") as socket:
        await socket.send(b"\x00" + b"x" * 100_000)
        await socket.send(b"\xff\x00")
        found = await drain(socket)
    assert found[1] == b"x" * 100_000


async def test_exec_is_refused_before_the_upgrade(api: KubernetesClient) -> None:
    await start(api)
    with pytest.raises(InvalidStatus) as caught:
        async with api.exec("none", "true"):
            pass
    assert caught.value.response.status_code == 404
    with pytest.raises(InvalidStatus) as caught:
        async with api.exec("one", "true", container="other"):
            pass
    assert json.loads(caught.value.response.body or b"")["message"] == "container other is not valid for pod one"


async def test_failed_pull_is_told_and_tried_again(cluster: FakeCluster, api: KubernetesClient) -> None:
    item = pod("one")
    image = item["spec"]["containers"][0]["image"]
    cluster.kubelet.pulls.errors[image] = "not found"
    await api.create(api.path("pods"), item)
    await api.wait(api.path("pods", "one"), lambda one: waiting_reason(one) == "ErrImagePull")
    await api.wait(api.path("pods", "one"), lambda one: waiting_reason(one) == "ImagePullBackOff")
    assert {"Pulling", "Failed", "BackOff"} <= set(await reasons(api, "one"))
    cluster.kubelet.pulls.errors.clear()
    await api.wait(api.path("pods", "one"), is_running)


async def test_container_that_ran_out_of_memory_is_started_again(cluster: FakeCluster, api: KubernetesClient) -> None:
    addresses: list[str] = []

    async def run(one: PodRun) -> ContainerExit:
        addresses.append(one.address)
        if len(addresses) == 1:
            return OUT_OF_MEMORY
        await one.stopping.wait()
        return ContainerExit(0)

    cluster.kubelet.run_pod = run
    await api.create(api.path("pods"), pod("one"))
    found = await api.wait(
        api.path("pods", "one"),
        lambda one: one["status"].get("containerStatuses", [{}])[0].get("ready") and len(addresses) > 1,
    )
    container = found["status"]["containerStatuses"][0]
    assert container["restartCount"] == 1
    assert container["lastState"]["terminated"]["reason"] == "OOMKilled"
    assert addresses[0] == addresses[1] == found["status"]["podIP"]


async def test_pods_of_a_lost_node_stay_until_it_is_out_of_service(cluster: FakeCluster, api: KubernetesClient) -> None:
    found = await start(api)
    node = found["spec"]["nodeName"]
    cluster.lose_node(node)
    cluster.evict_lost_pods(node)
    held = await api.get(api.path("pods", "one"))
    assert "deletionTimestamp" in held["metadata"]
    assert held["status"]["phase"] == "Running"
    assert {one["type"]: one["status"] for one in held["status"]["conditions"]}["Ready"] == "False"
    await api.request("DELETE", api.path("pods", "one"), {"gracePeriodSeconds": 1})
    assert (await api.request("GET", api.path("pods", "one"))).status_code == 200
    taint = {"key": OUT_OF_SERVICE, "value": "nodeshutdown", "effect": "NoExecute"}
    await api.request("PATCH", f"/api/v1/nodes/{node}", {"spec": {"taints": [taint]}}, kind=MERGE)
    await api.wait_gone(api.path("pods", "one"))


async def test_volume_of_a_lost_node_stays_attached(cluster: FakeCluster, api: KubernetesClient) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    await api.create(api.path("persistentvolumeclaims"), {"metadata": {"name": "data"}, "spec": spec})
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    node = (await start(api, volumes=[volume]))["spec"]["nodeName"]
    path = "/apis/storage.k8s.io/v1/volumeattachments"
    (attachment,) = (await api.get(path))["items"]
    assert (attachment["spec"]["nodeName"], attachment["status"]) == (node, {"attached": True})
    cluster.lose_node(node)
    await api.request("DELETE", api.path("pods", "one"), {"gracePeriodSeconds": 0})
    assert (await api.request("GET", api.path("pods", "one"))).status_code == 404
    assert len((await api.get(path))["items"]) == 1
    await api.request("DELETE", f"/api/v1/nodes/{node}")
    assert (await api.get(path))["items"] == []


async def test_pods_of_a_deleted_or_recovered_node_end(cluster: FakeCluster, api: KubernetesClient) -> None:
    for end in ("recover", "delete"):
        found = await start(api, end)
        node = found["spec"]["nodeName"]
        cluster.lose_node(node)
        cluster.evict_lost_pods(node)
        assert (await api.request("GET", api.path("pods", end))).status_code == 200
        if end == "recover":
            cluster.recover_node(node)
        else:
            await api.request("DELETE", f"/api/v1/nodes/{node}")
        await api.wait_gone(api.path("pods", end))


async def test_evicted_pod_has_failed_for_a_reason(cluster: FakeCluster, api: KubernetesClient) -> None:
    await start(api)
    cluster.evict_pod(api.namespace, "one", "The node was low on resource: memory.")
    found = await api.get(api.path("pods", "one"))
    assert (found["status"]["phase"], found["status"]["reason"]) == ("Failed", "Evicted")
    assert "Evicted" in await reasons(api, "one")
    assert (await api.request("DELETE", api.path("pods", "one"))).status_code == 200
    assert (await api.request("GET", api.path("pods", "one"))).status_code == 404


async def test_budget_holds_an_eviction_back(api: KubernetesClient) -> None:
    await start(api)
    path = api.path("poddisruptionbudgets", "keep", group="/apis/policy/v1")
    budget = {"metadata": {"name": "keep"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "one"}}}}
    await api.create(path.rpartition("/")[0], budget)
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "one", "namespace": api.namespace}}
    code, reason, message = await api.refused("POST", f"{api.path('pods', 'one')}/eviction", eviction)
    assert (code, reason) == (429, "TooManyRequests")
    assert message == "Cannot evict pod as it would violate the pod's disruption budget."
    await api.request("DELETE", path)
    made = await api.request("POST", f"{api.path('pods', 'one')}/eviction", eviction)
    assert made.status_code == 201
    await api.wait_gone(api.path("pods", "one"))


async def test_namespace_ends_after_its_pods_and_claims(api: KubernetesClient) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    await api.create(api.path("persistentvolumeclaims"), {"metadata": {"name": "data"}, "spec": spec})
    await start(api, volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])
    held = {"metadata": {"finalizers": ["example.com/hold"]}}
    await api.request("PATCH", api.path("pods", "one"), held, kind=MERGE)
    path = api.path("networkpolicies", group="/apis/networking.k8s.io/v1")
    await api.create(path, {"metadata": {"name": "deny"}, "spec": {"podSelector": {}}})
    await api.request("DELETE", f"/api/v1/namespaces/{api.namespace}")
    await api.wait(api.path("pods", "one"), lambda item: "deletionTimestamp" in item["metadata"])
    assert "deletionTimestamp" not in (await api.get(f"{path}/deny"))["metadata"]
    await api.request("PATCH", api.path("pods", "one"), {"metadata": {"finalizers": None}}, kind=MERGE)
    await api.wait_gone(f"/api/v1/namespaces/{api.namespace}")
