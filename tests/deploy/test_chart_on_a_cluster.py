"""The chart as an API server takes it, by a dry run of all its objects and by Helm, at a fake cluster."""

import asyncio
from collections.abc import AsyncIterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.chart import CHART, EXAMPLES, NAMESPACE, find_object, render_chart
from tests.support.cluster_programs import ClusterPrograms, running_cluster_programs
from tests.support.kubernetes.cluster import FakeCluster
from tests.support.kubernetes.store import Change
from tests.support.kubernetes.writes import timestamp

_SELF_MADE = {"ServiceAccount/default", "ConfigMap/kube-root-ca.crt"}


@pytest.fixture
async def programs(tmp_path: Path) -> AsyncIterator[ClusterPrograms]:
    async with running_cluster_programs(tmp_path, NAMESPACE) as found:
        yield found


async def apply_dry(programs: ClusterPrograms, documents: str) -> tuple[int | None, str, str]:
    """Apply YAML without changing anything."""
    return await programs.kubectl("apply", "--dry-run=server", "-f", "-", documents=documents)


@pytest.mark.parametrize("example", [path.stem for path in EXAMPLES])
async def test_an_api_server_accepts_every_object(programs: ClusterPrograms, example: str) -> None:
    programs.cluster.define_custom_resources()
    objects = render_chart(example)
    for name in {NAMESPACE, *(one["metadata"].get("namespace", NAMESPACE) for one in objects)}:
        programs.cluster.add_namespace(name)
    code, output, errors = await apply_dry(programs, yaml.safe_dump_all(map(dict, objects)))
    assert (code, len(output.splitlines())) == (0, len(objects)), errors


@pytest.mark.parametrize(
    ("example", "kind", "path", "value", "refusal"),
    [
        ("try", "Service", "spec.portz", [], 'unknown field "spec.portz"'),
        ("production", "ServiceMonitor", "spec.endpoint", [], 'unknown field "spec.endpoint"'),
        ("production", "ServiceMonitor", "spec.endpoints.0.token", "x", 'unknown field "spec.endpoints[0].token"'),
        ("production", "ServiceMonitor", "spec.endpoints.0.interval", "often", "spec.endpoints[0].interval in body"),
        ("production", "ServiceMonitor", "spec.endpoints.0.path", 7, 'must be of type string: "integer"'),
        ("production", "ServiceMonitor", "spec.selector", None, "spec.selector: Required value"),
        ("openshift", "HTTPRoute", "spec.rules.0.timeout", "0s", 'unknown field "spec.rules[0].timeout"'),
        ("openshift", "HTTPRoute", "spec.rules.0.backendRefs.0.port", 0, "spec.rules[0].backendRefs[0].port: Invalid"),
        ("openshift", "HTTPRoute", "spec.rules.0.matches.0.path.type", "Prefix", 'supported values: "Exact"'),
        ("openshift", "HTTPRoute", "spec.hostnames", ["a.example"] * 17, "must have at most 16 items"),
    ],
)
async def test_an_api_server_refuses_a_wrong_field(
    programs: ClusterPrograms, example: str, kind: str, path: str, value: Any, refusal: str
) -> None:
    programs.cluster.define_custom_resources()
    programs.cluster.add_namespace(NAMESPACE)
    item = deepcopy(dict(next(one for one in render_chart(example) if one["kind"] == kind)))
    *parents, last = path.split(".")
    owner: Any = item
    for name in parents:
        owner = owner[int(name) if name.isdecimal() else name]
    owner[last] = value
    code, _, errors = await apply_dry(programs, yaml.safe_dump(item))
    assert (code, refusal in errors) == (1, True), errors


@pytest.mark.parametrize(("example", "kind"), [("production", "ServiceMonitor"), ("openshift", "HTTPRoute")])
async def test_a_cluster_without_a_custom_resource_has_no_such_kind(
    programs: ClusterPrograms, example: str, kind: str
) -> None:
    programs.cluster.add_namespace(NAMESPACE)
    item = dict(find_object(render_chart(example), kind))
    code, _, errors = await apply_dry(programs, yaml.safe_dump(item))
    assert (code, f'no matches for kind "{kind}"' in errors) == (1, True), errors


async def test_helm_installs_upgrades_and_removes_everything(programs: ClusterPrograms) -> None:
    cluster, example = programs.cluster, ("--namespace", NAMESPACE, "-f", str(CHART / "examples/production.yaml"))
    cluster.define_custom_resources()
    cluster.add_namespace(NAMESPACE)
    made = finish_jobs(cluster)
    code, _, errors = await programs.helm("install", "roost", str(CHART), *example)
    assert code == 0, errors
    rendered = {f"{one['kind']}/{one['metadata']['name']}" for one in render_chart("production")}
    assert rendered <= set(made)
    assert made.index("Job/roost-migrations") < made.index("Deployment/roost")
    await programs.kubectl("patch", "deployment", "roost", "-p", '{"spec": {"replicas": 0}}')
    code, _, errors = await programs.helm("upgrade", "roost", str(CHART), *example, "--set", "server.drainSeconds=20")
    assert code == 0, errors
    deployment = cluster.store.get("Deployment", NAMESPACE, "roost")
    assert deployment
    assert deployment["spec"]["replicas"] == 0, "with `autoscaling`, the chart does not set it"
    assert made.count("Job/roost-migrations") == 2
    assert made.count("Deployment/roost") == 1
    code, _, errors = await programs.helm("uninstall", "roost", "--namespace", NAMESPACE)
    assert code == 0, errors
    assert find_left(cluster) == {"Job/roost-migrations", "NetworkPolicy/roost-agents-deny", "Namespace/roost-agents"}


async def test_helm_does_not_undo_a_change_by_hand_unasked(programs: ClusterPrograms) -> None:
    programs.cluster.add_namespace(NAMESPACE)
    finish_jobs(programs.cluster)
    example = ("--namespace", NAMESPACE, "-f", str(CHART / "examples/try.yaml"))
    code, _, errors = await programs.helm("install", "roost", str(CHART), *example)
    assert code == 0, errors
    await programs.kubectl("patch", "deployment", "roost", "-p", '{"spec": {"replicas": 0}}')
    upgrade = ("upgrade", "roost", str(CHART), *example, "--set", "server.replicas=2")
    code, _, errors = await programs.helm(*upgrade)
    assert (code, "conflict occurred while applying object" in errors) == (1, True), errors
    code, _, errors = await programs.helm(*upgrade, "--force-conflicts")
    assert code == 0, errors
    deployment = programs.cluster.store.get("Deployment", NAMESPACE, "roost")
    assert deployment
    assert deployment["spec"]["replicas"] == 2


def finish_jobs(cluster: FakeCluster) -> list[str]:
    """Let each new Job succeed, as the fake runs none; return a list that gets the objects in the order of creation."""
    made: list[str] = []
    now = timestamp()
    condition = {"type": "Complete", "status": "True", "lastProbeTime": now, "lastTransitionTime": now}
    status = {"succeeded": 1, "startTime": now, "completionTime": now, "conditions": [condition]}

    def handle(change: Change) -> None:
        if change.now and not change.before:
            item = change.now.object
            made.append(f"{item['kind']}/{item['metadata']['name']}")
            if item["kind"] == "Job":
                edit = lambda live: {**live, "status": status}  # noqa: E731
                asyncio.get_running_loop().call_soon(cluster.writer.change, item, edit)

    cluster.store.listeners.append(handle)
    return made


def find_left(cluster: FakeCluster) -> set[str]:
    """Return the objects in the namespaces of the release and of its agents, and the namespace of the agents."""
    own, of_agents = {NAMESPACE, "roost-agents"}, cluster.store.get("Namespace", "", "roost-agents")
    found = [one for one in cluster.store.dump() if one["metadata"].get("namespace") in own]
    found += [of_agents] if of_agents else []
    return {f"{one['kind']}/{one['metadata']['name']}" for one in found} - _SELF_MADE
