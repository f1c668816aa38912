"""A fake API server with a pod for each agent, as objects only: `CERTIFICATE`, and the agents as JSON in its input.

It prints its address once all are there. A number as a further line of its input lets as many pods a second fail from
then on, spread over the second; the end of its input ends it.
"""

import asyncio
import base64
import itertools
import json
import sys
from collections.abc import Iterator, Sequence

from bench.pods import NAMESPACE
from roost.agents.lifecycle.workflows.model import container_spec
from roost.core.machine.interpreter import freeze_heap
from roost.core.sensitive import Sensitive
from roost.drivers.runtime.contract import ContainerLimits
from roost.drivers.runtime.docker.plan import read_only_files
from roost.drivers.runtime.kubernetes import plan
from roost.drivers.runtime.kubernetes.plan import ClusterOptions
from tests.support.kubernetes.cluster import FakeCluster, running_cluster
from tests.support.kubernetes.resources import BY_KIND, Object
from tests.support.kubernetes.store import Stored

OPTIONS = ClusterOptions(image="fake:1", server_networks=("127.0.0.0/8",), accepts_open_network=True)
_POLL_SECONDS = 0.02
_REASON = "The node was low on resource: memory."


async def _create(cluster: FakeCluster, agent_id: str, certificate: str) -> Sequence[Object]:
    """Create the objects of one agent as its server does, and return them once its pod runs."""
    spec = container_spec(agent_id, None, ContainerLimits())
    for files in read_only_files(spec):
        _add(cluster, plan.read_only_map(OPTIONS, files))
    claim = _add(cluster, plan.claim_object(OPTIONS, agent_id))["metadata"]["uid"]
    secret = _add(cluster, plan.secret_object(OPTIONS, agent_id, Sensitive(certificate), claim))["metadata"]["name"]
    pod = _add(cluster, plan.pod_object(OPTIONS, spec, secret))["metadata"]["name"]
    names = {"PersistentVolumeClaim": pod, "Secret": secret, "Pod": pod}
    while True:
        found = [cluster.store.get(kind, NAMESPACE, name) for kind, name in names.items()]
        if found[-1] and found[-1]["status"]["phase"] == "Running":
            return [one for one in found if one]
        await asyncio.sleep(_POLL_SECONDS)


def _add(cluster: FakeCluster, item: Object) -> Object:
    item["metadata"]["namespace"] = NAMESPACE
    return cluster.create(item)


def _copy(cluster: FakeCluster, objects: Sequence[Object], first: str, agent_id: str) -> None:
    """Add the objects of an agent for another one, without the checks and the history of requests."""
    claim, secret, pod = (item["metadata"] for item in objects)
    uids = {one["uid"]: f"{one['uid'][:-11]}{agent_id[-11:]}" for one in (claim, secret, pod)}
    names = {secret["name"]: plan.secret_name(OPTIONS, agent_id, uids[claim["uid"]]), first: agent_id}
    for item in objects:
        text = json.dumps(item)
        for before, after in (uids | names).items():
            text = text.replace(before, after)
        copy = json.loads(text)
        stored = Stored(copy, int(copy["metadata"]["resourceVersion"]))
        assert stored.body  # is kept, so that lists are as fast as those of an API server
        cluster.store._objects[BY_KIND[copy["kind"]]][NAMESPACE, copy["metadata"]["name"]] = stored  # noqa: SLF001


async def _fail_pods(cluster: FakeCluster, agents: Iterator[str], rate: float) -> None:
    while True:
        await asyncio.sleep(1 / rate)
        name = OPTIONS.object_name(next(agents))
        pod = cluster.store.get("Pod", NAMESPACE, name)
        if pod and pod["status"]["phase"] == "Running":
            cluster.evict_pod(NAMESPACE, name, _REASON)


async def _serve(certificate: str, agents: Sequence[str]) -> None:
    async with running_cluster(nodes=0) as cluster:
        cluster.add_node("large", cpu="1000000", memory="1000Ti", pods="1000000")
        cluster.add_namespace(NAMESPACE)
        objects = await _create(cluster, agents[0], certificate)
        for agent_id in agents[1:]:
            _copy(cluster, objects, agents[0], agent_id)
        freeze_heap()
        print(cluster.url, flush=True)
        rate = float(await asyncio.to_thread(sys.stdin.readline) or 0)
        failing = asyncio.create_task(_fail_pods(cluster, itertools.cycle(agents), rate)) if rate else None
        await asyncio.to_thread(sys.stdin.read)
        if failing:
            failing.cancel()


if __name__ == "__main__":
    asyncio.run(_serve(base64.b64decode(sys.argv[1]).decode(), json.loads(sys.stdin.readline())))
