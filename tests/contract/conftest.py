"""One server for all tests of a file, unless the file defines its own."""

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
    """Return the name of a tenant of this test only."""
    return request.node.name[:90]


@pytest.fixture
def api(server: RunningServer, tenant: str) -> httpx.AsyncClient:
    """Return a client of the storage API for that tenant."""
    return server.client(server.key(tenant), "api.localhost")
