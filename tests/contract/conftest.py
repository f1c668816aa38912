"""One server for all tests of a file, which brings its own where that needs settings or a network."""

from collections.abc import AsyncIterator

import pytest

from tests.server import Running, running


@pytest.fixture(scope="module")
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    async with running(tmp_path_factory.mktemp("d") / "data") as server:
        yield server
