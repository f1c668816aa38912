"""A container of each runtime, with a file outside of its workspace."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from roost.warden_client.client import WardenClient
from tests.conformance.runtimes import CASES, RuntimeEnv, open_runtime_env

SECRET = "outside of every workspace"


@pytest.fixture(params=CASES)
async def env(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[RuntimeEnv]:
    async with open_runtime_env(request.param, tmp_path) as found:
        yield found


@pytest.fixture
async def container(env: RuntimeEnv) -> WardenClient:
    container = await env.container()
    await container.write("secret", SECRET.encode(), root="home")
    return container
