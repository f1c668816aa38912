"""Fixtures of all tests."""

import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.chain.anvil import Chain, anvil_chain
from tests.support.acme import AcmeServer, acme_server
from tests.support.debian_root import PackagesNotFetched

pytest_plugins = ["tests.support.databases"]

settings.register_profile("any-machine", deadline=None)  # other programs may keep the machine busy
settings.load_profile("any-machine")

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # so in a shell's background; programs that tests start inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


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
