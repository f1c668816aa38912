"""A server for each story, and an end to every container that it leaves."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from roost.core.db import Database
from roost.drivers.runtime.fake import FakeRuntime
from tests.agents.lifecycle.lifecycle_env import LifecycleEnv, open_lifecycle_env


@pytest.fixture
def dialect() -> str:
    """What differs between databases is tried where the SQL stands."""
    return "sqlite"


@pytest.fixture
async def folder(tmp_path: Path) -> AsyncIterator[Path]:
    yield tmp_path / "data"
    runtime = FakeRuntime(tmp_path / "data")
    await runtime.list()
    for place in (tmp_path / "data").glob("agents/*"):
        await runtime.delete(place.name)


@pytest.fixture
async def env(database: Database, folder: Path) -> AsyncIterator[LifecycleEnv]:
    async with open_lifecycle_env(database, folder) as made:
        yield made
