"""A folder for containers, and the containers in it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.drivers.runtime.bwrap.containers import Inside, Start, containers


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    async with containers(tmp_path / "data") as found:
        yield found


@pytest.fixture
async def container(start: Start) -> Inside:
    return await start()
