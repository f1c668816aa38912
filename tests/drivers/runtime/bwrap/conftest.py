"""Fixtures that start real containers."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from roost.drivers.runtime.bwrap.driver import BwrapRuntime
from tests.conformance.containers import RunningContainer, Start, containers


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    async with containers(BwrapRuntime(tmp_path / "data")) as start_container:
        yield start_container


@pytest.fixture
async def container(start: Start) -> RunningContainer:
    return await start()
