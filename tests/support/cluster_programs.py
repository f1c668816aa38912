"""helm and kubectl at a fake cluster, as an administrator runs them."""

import asyncio
import json
import os
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.kubernetes.cluster import FakeCluster, running_cluster
from tests.support.kubernetes_programs import KubernetesPrograms, ProgramsUnavailable, fetch_kubernetes_programs

_GROUP = "rbac.authorization.k8s.io"
# The programs send no token without TLS.
_EVERYBODY = {
    "apiVersion": f"{_GROUP}/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "everybody"},
    "roleRef": {"apiGroup": _GROUP, "kind": "ClusterRole", "name": "cluster-admin"},
    "subjects": [{"kind": "Group", "apiGroup": _GROUP, "name": "system:unauthenticated"}],
}


@dataclass(frozen=True)
class ClusterPrograms:
    """The programs with a kubeconfig in `folder`. Each run returns the exit code and both outputs."""

    cluster: FakeCluster
    programs: KubernetesPrograms
    folder: Path

    async def kubectl(self, *arguments: str, documents: str = "") -> tuple[int | None, str, str]:
        return await self._run(self.programs.kubectl, arguments, documents)

    async def helm(self, *arguments: str) -> tuple[int | None, str, str]:
        return await self._run(self.programs.helm, arguments)

    async def _run(self, program: Path, arguments: tuple[str, ...], text: str = "") -> tuple[int | None, str, str]:
        env = {"HOME": str(self.folder), "KUBECONFIG": str(self.folder / "config"), "PATH": os.environ["PATH"]}
        process = await asyncio.create_subprocess_exec(
            program, *arguments, env=env, stdin=PIPE, stdout=PIPE, stderr=PIPE
        )
        async with asyncio.timeout(120):
            output, errors = await process.communicate(text.encode())
        return process.returncode, output.decode(), errors.decode()


@asynccontextmanager
async def running_cluster_programs(folder: Path, namespace: str) -> AsyncIterator[ClusterPrograms]:
    """Run a cluster for the programs, which use that namespace; skips the test where they cannot be had."""
    try:
        programs = fetch_kubernetes_programs()
    except ProgramsUnavailable as reason:
        pytest.skip(str(reason))
    async with running_cluster() as cluster:
        cluster.create(_EVERYBODY)
        config = {
            "current-context": "fake",
            "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "", "namespace": namespace}}],
            "clusters": [{"name": "fake", "cluster": {"server": cluster.url}}],
        }
        (folder / "config").write_text(json.dumps(config))
        yield ClusterPrograms(cluster, programs, folder)
