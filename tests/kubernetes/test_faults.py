"""What a test can break in the fake, and how it sees which requests came."""

import ssl

import httpx2 as httpx
import pytest

from tests.kubernetes.client import KubernetesClient, config_map, pod
from tests.platforms.tls import Authority
from tests.support.kubernetes.cluster import ADMIN_TOKEN, FakeCluster, running_cluster
from tests.support.kubernetes.http_server import Fault
from tests.support.kubernetes.schemas import SchemaViolation


async def test_throttled_requests_are_told_when_to_come_again(cluster: FakeCluster, api: KubernetesClient) -> None:
    cluster.server.throttle(2, retry_after=7)
    for _ in range(2):
        found = await api.request("GET", api.path("pods"))
        assert (found.status_code, found.headers["retry-after"]) == (429, "7")
        assert found.text == "Too many requests, please try again later.\n"
    assert (await api.request("GET", api.path("pods"))).status_code == 200


async def test_fault_meets_the_requests_that_it_selects(cluster: FakeCluster, api: KubernetesClient) -> None:
    cluster.server.add_fault(Fault(status=503, matches=lambda one: one.method == "POST"))
    assert (await api.request("GET", api.path("pods"))).status_code == 200
    assert (await api.request("POST", api.path("configmaps"), config_map("a"))).status_code == 503
    assert (await api.request("POST", api.path("configmaps"), config_map("a"))).status_code == 201


@pytest.mark.parametrize("drop_after", [0, 200])
async def test_connection_is_dropped_in_an_answer(cluster: FakeCluster, api: KubernetesClient, drop_after: int) -> None:
    cluster.server.add_fault(Fault(drop_after=drop_after))
    with pytest.raises(httpx.TransportError):
        await api.request("GET", "/api/v1/nodes")
    assert (await api.request("GET", "/api/v1/nodes")).status_code == 200


async def test_restart_ends_watches_and_keeps_the_state(cluster: FakeCluster, api: KubernetesClient) -> None:
    await api.create(api.path("configmaps"), config_map("a"))

    async def restart_during_a_watch() -> None:
        async with api.watch(api.path("configmaps")) as events:
            await anext(events)
            await cluster.restart()
            async for _ in events:
                pass

    with pytest.raises(httpx.TransportError):
        await restart_during_a_watch()
    assert (await api.get(api.path("configmaps", "a")))["metadata"]["name"] == "a"
    assert cluster.lister.watch_count == 0


async def test_requests_are_recorded_with_their_user(cluster: FakeCluster, api: KubernetesClient) -> None:
    cluster.server.requests.clear()
    await api.get(api.path("pods"), labelSelector="a=b")
    (found,) = cluster.server.requests
    assert (found.method, found.path, found.user) == ("GET", api.path("pods"), "kubernetes-admin")
    assert found.query == {"labelSelector": ["a=b"]}
    assert found.agent.startswith("python-httpx")
    assert found.status == 200


async def test_answer_that_breaks_the_published_schema_is_an_error(cluster: FakeCluster) -> None:
    metadata = {"name": "a", "namespace": "default"}
    with pytest.raises(SchemaViolation, match="unknown"):
        cluster.store.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "unknown": 1})


async def test_list_shows_a_thousand_pods(cluster: FakeCluster, api: KubernetesClient) -> None:
    cluster.scheduler.paused = True
    for number in range(1000):
        item = pod(f"pod-{number}")
        cluster.create({**item, "metadata": {**item["metadata"], "namespace": api.namespace}})
    found = await api.get(api.path("pods"))
    assert len(found["items"]) == 1000


async def test_tls_is_served_with_a_given_authority() -> None:
    authority = Authority("Kubernetes")
    async with running_cluster(tls=authority.server("localhost")) as cluster:
        url = cluster.url.replace("127.0.0.1", "localhost")
        client = KubernetesClient(
            url, ADMIN_TOKEN, tls=ssl.create_default_context(cadata=authority.certificate.decode())
        )
        assert len((await client.get("/api/v1/nodes"))["items"]) == 1
        await client.close()
