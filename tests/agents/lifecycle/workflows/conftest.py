"""A server for each test; the containers that it leaves are stopped."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from roost.core.db import Database
from roost.drivers.runtime.fake import FakeRuntime
from tests.agents.lifecycle.workflows.lifecycle_env import LifecycleEnv, open_lifecycle_env


@pytest.fixture
def dialect() -> str:
    """SQLite is enough here: the tests of the stores run against both databases."""
    return "sqlite"


@pytest.fixture
async def folder(tmp_path: Path) -> AsyncIterator[Path]:
    yield tmp_path / "data"
    runtime = FakeRuntime(tmp_path / "data")
    await runtime.list()
    for path in (tmp_path / "data").glob("agents/*"):
        await runtime.delete(path.name)


@pytest.fixture
async def env(database: Database, folder: Path) -> AsyncIterator[LifecycleEnv]:
    async with open_lifecycle_env(database, folder) as opened:
        yield opened
