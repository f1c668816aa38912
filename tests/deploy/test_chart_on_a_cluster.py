"""The chart as an API server takes it: `kubectl apply --dry-run=server` of each example on a fake cluster."""

import asyncio
import json
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.chart import EXAMPLES, NAMESPACE, find_object, render_chart
from tests.support.kubernetes.cluster import FakeCluster, running_cluster
from tests.support.kubernetes_programs import ProgramsUnavailable, fetch_kubernetes_programs

_GROUP = "rbac.authorization.k8s.io"
# kubectl sends no token without TLS.
_EVERYBODY = {
    "apiVersion": f"{_GROUP}/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "everybody"},
    "roleRef": {"apiGroup": _GROUP, "kind": "ClusterRole", "name": "cluster-admin"},
    "subjects": [{"kind": "Group", "apiGroup": _GROUP, "name": "system:unauthenticated"}],
}


@dataclass(frozen=True)
class Kubectl:
    cluster: FakeCluster
    program: Path
    folder: Path

    async def apply(self, documents: str) -> tuple[int | None, str, str]:
        """Apply YAML without changing anything; return code and outputs."""
        config = {
            "current-context": "fake",
            "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "", "namespace": NAMESPACE}}],
            "clusters": [{"name": "fake", "cluster": {"server": self.cluster.url}}],
        }
        (self.folder / "config").write_text(json.dumps(config))
        env = {"HOME": str(self.folder), "KUBECONFIG": str(self.folder / "config")}
        arguments = ("apply", "--dry-run=server", "-f", "-")
        process = await asyncio.create_subprocess_exec(
            self.program, *arguments, env=env, stdin=PIPE, stdout=PIPE, stderr=PIPE
        )
        async with asyncio.timeout(120):
            output, errors = await process.communicate(documents.encode())
        return process.returncode, output.decode(), errors.decode()


@pytest.fixture
async def kubectl(tmp_path: Path) -> AsyncIterator[Kubectl]:
    try:
        program = fetch_kubernetes_programs().kubectl
    except ProgramsUnavailable as reason:
        pytest.skip(str(reason))
    async with running_cluster() as cluster:
        cluster.create(_EVERYBODY)
        yield Kubectl(cluster, program, tmp_path)


@pytest.mark.parametrize("example", [path.stem for path in EXAMPLES])
async def test_an_api_server_accepts_every_object(kubectl: Kubectl, example: str) -> None:
    kubectl.cluster.define_custom_resources()
    objects = render_chart(example)
    for name in {NAMESPACE, *(one["metadata"].get("namespace", NAMESPACE) for one in objects)}:
        kubectl.cluster.add_namespace(name)
    code, output, errors = await kubectl.apply(yaml.safe_dump_all(map(dict, objects)))
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
    kubectl: Kubectl, example: str, kind: str, path: str, value: Any, refusal: str
) -> None:
    kubectl.cluster.define_custom_resources()
    kubectl.cluster.add_namespace(NAMESPACE)
    item = deepcopy(dict(next(one for one in render_chart(example) if one["kind"] == kind)))
    *parents, last = path.split(".")
    owner: Any = item
    for name in parents:
        owner = owner[int(name) if name.isdecimal() else name]
    owner[last] = value
    code, _, errors = await kubectl.apply(yaml.safe_dump(item))
    assert (code, refusal in errors) == (1, True), errors


@pytest.mark.parametrize(("example", "kind"), [("production", "ServiceMonitor"), ("openshift", "HTTPRoute")])
async def test_a_cluster_without_a_custom_resource_has_no_such_kind(kubectl: Kubectl, example: str, kind: str) -> None:
    kubectl.cluster.add_namespace(NAMESPACE)
    item = dict(find_object(render_chart(example), kind))
    code, _, errors = await kubectl.apply(yaml.safe_dump(item))
    assert (code, f'no matches for kind "{kind}"' in errors) == (1, True), errors
