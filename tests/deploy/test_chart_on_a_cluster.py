"""The chart as an API server takes it: `kubectl apply --dry-run=server` of each example on a fake cluster."""

import asyncio
import json
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.support.chart import EXAMPLES, NAMESPACE, render_chart
from tests.support.kubernetes.cluster import FakeCluster, running_cluster
from tests.support.kubernetes.resources import BY_KIND
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
    objects = [one for one in render_chart(example) if one["kind"] in BY_KIND]  # no resources of other projects
    for name in {NAMESPACE, *(one["metadata"].get("namespace", NAMESPACE) for one in objects)}:
        kubectl.cluster.add_namespace(name)
    code, output, errors = await kubectl.apply(yaml.safe_dump_all(map(dict, objects)))
    assert (code, len(output.splitlines())) == (0, len(objects)), errors


async def test_an_api_server_refuses_a_field_that_it_does_not_know(kubectl: Kubectl) -> None:
    kubectl.cluster.add_namespace(NAMESPACE)
    (service, *_) = [one for one in render_chart("try") if one["kind"] == "Service"]
    code, _, errors = await kubectl.apply(yaml.safe_dump({**service, "spec": {**service["spec"], "portz": []}}))
    assert (code, 'unknown field "spec.portz"' in errors) == (1, True), errors
