"""The fake cluster of the tests of the driver."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conformance.clusters import running_wardens
from tests.drivers.runtime.kubernetes.cluster_env import ClusterEnv


@pytest.fixture
async def env(tmp_path: Path) -> AsyncIterator[ClusterEnv]:
    async with running_wardens(tmp_path / "pods") as cluster:
        yield ClusterEnv(cluster, tmp_path)
