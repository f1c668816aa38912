"""One server for all tests of a file, unless the file defines its own."""

from collections.abc import AsyncIterator, Iterator

import httpx2 as httpx
import pytest

from tests.conformance.name_server import NameServer, serve_names
from tests.conformance.s3_server import s3_address
from tests.contract.backing import LOCAL, SERVICES, Backing, local_backing, service_backing
from tests.support.databases import postgres_copy
from tests.support.server import RunningServer, running

__all__ = ["s3_address"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the tests that a file names in `ON_SERVICES` on PostgreSQL and a bucket, too."""
    core = getattr(metafunc.module, "ON_SERVICES", None)
    if core is not None and "backing" in metafunc.fixturenames:
        services = [pytest.param(SERVICES, marks=pytest.mark.postgres)] if metafunc.function.__name__ in core else []
        metafunc.parametrize("backing", [LOCAL, *services], indirect=True, scope="module")


@pytest.fixture(scope="module")
def services_database(request: pytest.FixtureRequest) -> Iterator[str]:
    template = request.getfixturevalue("_postgresql_template")
    yield from postgres_copy(request.getfixturevalue("postgres_url"), template)


@pytest.fixture(scope="module")
async def backing(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Backing]:
    folder = tmp_path_factory.mktemp("d") / "data"
    if getattr(request, "param", LOCAL) == LOCAL:
        yield local_backing(folder)
        return
    url, address = (request.getfixturevalue(name) for name in ("services_database", "s3_address"))
    async with service_backing(folder, url, address) as opened:
        yield opened


@pytest.fixture(scope="module")
async def names() -> AsyncIterator[NameServer]:
    """Run the name server that the server of the file asks."""
    async with serve_names() as server:
        yield server


@pytest.fixture(scope="module")
async def server(backing: Backing, names: NameServer, request: pytest.FixtureRequest) -> AsyncIterator[RunningServer]:
    """Run a server with the settings that a file names in `SETTINGS`."""
    settings = {"ROOST_DNS_SERVERS": f"127.0.0.1:{names.port}", **getattr(request.module, "SETTINGS", {})}
    async with running(backing.folder, **backing.environment, **settings) as server:
        yield server


@pytest.fixture
def tenant(request: pytest.FixtureRequest) -> str:
    """Return the name of a tenant of this test only."""
    return request.node.name[:90]


@pytest.fixture
def api(server: RunningServer, tenant: str) -> httpx.AsyncClient:
    """Return a client of the storage API for that tenant."""
    return server.client(server.key(tenant), "api.localhost")
