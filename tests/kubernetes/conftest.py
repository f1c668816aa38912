"""The tests of API semantics run against the fake cluster, and against a real one with `make test-kubernetes`."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from tests.kubernetes.client import KubernetesClient, real_client
from tests.support.kubernetes.cluster import ADMIN_TOKEN, FakeCluster, running_cluster

real = real_client()


@pytest.fixture
async def fake() -> AsyncIterator[FakeCluster | None]:
    if real is not None:
        yield None
        return
    async with running_cluster() as found:
        yield found


@pytest.fixture
def cluster(fake: FakeCluster | None) -> FakeCluster:
    """The fake, for tests that control it."""
    if fake is None:
        pytest.skip("controls the fake")
    return fake


@pytest.fixture
async def api(fake: FakeCluster | None) -> AsyncIterator[KubernetesClient]:
    """A client of an administrator in an empty namespace."""
    client = KubernetesClient(fake.url, ADMIN_TOKEN) if fake else replace(real, others=[])  # type: ignore[type-var]
    made = await client.create("/api/v1/namespaces", {"metadata": {"generateName": "test-"}})
    client.namespace = made["metadata"]["name"]
    await client.wait(client.path("serviceaccounts", "default"), lambda _: True)
    yield client
    await client.request("DELETE", f"/api/v1/namespaces/{client.namespace}")
    await client.close()
