"""Servers of one database and one cluster: an agent runs on when its server is cut off, and when the next one stops."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from roost.agents.lifecycle.hosts import service, store, takeover
from roost.agents.lifecycle.hosts.model import HOST_TIMEOUT
from roost.agents.lifecycle.workflows.model import AgentRelays
from roost.core import clock
from roost.core.sensitive import Sensitive
from roost.drivers.runtime.kubernetes.api import KubernetesApi
from roost.drivers.runtime.kubernetes.credentials import ClusterAccess, ClusterCredentials
from roost.drivers.runtime.kubernetes.driver import KubernetesRuntime
from roost.drivers.runtime.kubernetes.plan import ClusterOptions
from tests.conformance.clusters import running_wardens
from tests.support.acme import find_free_ports
from tests.support.kubernetes.cluster import ADMIN_TOKEN, FakeCluster
from tests.support.server import RunningServer, running

pytestmark = [
    pytest.mark.container,
    pytest.mark.postgres,
    pytest.mark.timeout(300),
    pytest.mark.parametrize("dialect", ["postgresql"]),
]
OPTIONS = ClusterOptions(image="fake:1", server_networks=("127.0.0.0/8",), accepts_open_network=True)
FETCH = "import urllib.request as r; print(r.urlopen('http://127.0.0.1:8799/v1/models').status)"
"""Uses a relay of the agent's server."""


@asynccontextmanager
async def serve(cluster: FakeCluster, folder: Path, database_url: str) -> AsyncIterator[RunningServer]:
    (port,) = find_free_ports(1)
    access = ClusterAccess(cluster.url, "agents", ClusterCredentials(token=Sensitive(ADMIN_TOKEN.encode())))
    runtime = KubernetesRuntime(KubernetesApi(access, "0"), OPTIONS, folder)
    shared: dict[str, Any] = {"ROOST_DATABASE_URL": database_url, "ROOST_KEK": "0" * 64}
    shared["ROOST_PEER_ADDRESS"] = f"127.0.0.1:{port}"
    try:
        async with running(folder, runtime=runtime, **shared) as server:
            yield server
    finally:
        await runtime.close()


async def until(condition: Callable[[], Awaitable[object]]) -> None:
    last = time.monotonic() + 60
    while not await condition():
        assert time.monotonic() < last, "the condition did not become true"
        await asyncio.sleep(0.05)


async def works(server: RunningServer, agent: dict[str, Any]) -> bool:
    """Return whether the agent answers at a server, and reaches it."""
    client = server.agent_client(agent)
    if not (await client.get("/v1/models")).is_success:
        return False
    command = {"command": f'/usr/bin/python3 -c "{FETCH}"'}
    return (await client.post("/v0/console/exec", json=command)).json().get("stdout") == "200\n"


def list_pods(cluster: FakeCluster) -> list[str]:
    return [pod["metadata"]["uid"] for pod in cluster.store.objects("Pod", "agents")]


async def test_an_agent_runs_on_at_the_server_that_is_left(
    tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(takeover, "_GRACE_SECONDS", 0.0)
    async with running_wardens(tmp_path / "pods") as cluster, serve(cluster, tmp_path / "one", database_url) as one:
        database, host = one.roost.core.db, one.roost.core.host
        relays = one.roost.agents.registry.relays
        async with serve(cluster, tmp_path / "two", database_url) as two:
            answer = await one.client(one.key()).post("/v0/agents", json={"name": "Ada"})
            agent: dict[str, Any] = answer.raise_for_status().json()["agent"]
            pods = list_pods(cluster)
            assert len(pods) == 1
            assert await works(one, agent)
            assert await works(two, agent)  # which asks the other server
            # The first server is cut off from the database for a minute, and returns.
            await one.roost.agents.access.hosts._heartbeat.stop()
            long_ago = clock.utc_now() - 2 * HOST_TIMEOUT
            await database.write(lambda connection: store.set_seen(connection, host.id, host.session, long_ago))
            await until(lambda: reaches(two.roost.agents.registry.relays, agent))
            await until(lambda: reaches(relays))
            await until(lambda: works(two, agent))
            await until(lambda: works(one, agent))
            await one.roost.agents.access.hosts._heartbeat.run_once()
        await until(lambda: works(one, agent))  # the other server has stopped
        assert relays.list_open() == [agent["agentId"]]
        assert list_pods(cluster) == pods

        async def is_alone() -> bool:
            return [found.id for found in await database.read(service.list_hosts)] == [host.id]

        await until(is_alone)
        assert (await one.client(one.key()).delete(f"/v0/agents/{agent['agentId']}")).is_success
        assert list_pods(cluster) == []


async def reaches(relays: AgentRelays, *agents: dict[str, Any]) -> bool:
    return list(relays.list_open()) == [agent["agentId"] for agent in agents]
