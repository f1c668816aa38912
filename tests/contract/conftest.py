"""One server for all tests of a file, which brings its own where that needs settings or a network."""

from collections.abc import AsyncIterator

import httpx2 as httpx
import pytest

from tests.server import RunningServer, running


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    async with running(tmp_path_factory.mktemp("d") / "data") as server:
        yield server


@pytest.fixture
def tenant(request: pytest.FixtureRequest) -> str:
    """The name of a tenant of the test's own."""
    return request.node.name[:90]


@pytest.fixture
def api(server: RunningServer, tenant: str) -> httpx.AsyncClient:
    """The storage API as that tenant."""
    return server.client(server.key(tenant), "api.localhost")
