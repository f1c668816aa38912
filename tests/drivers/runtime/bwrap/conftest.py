"""A folder for boxes, and the boxes in it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.drivers.runtime.bwrap.boxes import Inside, Start, boxes


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    async with boxes(tmp_path / "data") as found:
        yield found


@pytest.fixture
async def box(start: Start) -> Inside:
    return await start()
