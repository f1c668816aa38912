"""Fixtures of all tests."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.chain.anvil import Chain, anvil_chain
from tests.support.acme import AcmeServer, acme_server
from tests.support.debian_root import PackagesNotFetched
from tests.support.docker_engine import DOCKER_SOCKET, DockerEngine, DockerUnavailable

pytest_plugins = ["tests.support.databases"]

settings.register_profile("any-machine", deadline=None)  # other programs may keep the machine busy
settings.load_profile("any-machine")

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # so in a shell's background; programs that tests start inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

LONG_TESTS = tuple(Path(__file__).with_name(name) for name in ("journeys", "conformance"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the longest files first, so that no worker waits for another at the end."""
    items.sort(key=lambda item: not any(map(item.path.is_relative_to, LONG_TESTS)))


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def docker_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DockerEngine]:
    """Run a Docker Engine; where none can be had the tests are skipped, with the reason."""
    try:
        engine = DockerEngine(tmp_path_factory.mktemp("docker"))
    except DockerUnavailable as reason:
        pytest.skip(str(reason))
    os.environ[DOCKER_SOCKET] = str(engine.socket)
    yield engine
    engine.stop()


@pytest.fixture(autouse=True)
def _docker(request: pytest.FixtureRequest) -> None:
    """Start the engine before the first test that is marked with `docker`, unless the environment names one."""
    if request.node.get_closest_marker("docker") and DOCKER_SOCKET not in os.environ:
        request.getfixturevalue("docker_engine")


@pytest.fixture(scope="session")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AcmeServer]:
    """Run an ACME server with its DNS; without the packages the tests are skipped, with the reason."""
    try:
        with acme_server(tmp_path_factory.mktemp("acme")) as server:
            yield server
    except PackagesNotFetched as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chain]:
    """Run a chain with a token; without Node the tests are skipped."""
    with anvil_chain(tmp_path_factory.mktemp("chain")) as running:
        yield running
