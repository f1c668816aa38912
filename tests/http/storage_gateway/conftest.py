from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from roost.core.db import Database
from roost.drivers.image.pillow import PillowRenderer
from roost.drivers.runtime.bwrap.sandbox import BwrapSandbox
from tests.http.storage_gateway.gateway_env import GatewayEnv, open_gateway_env
from tests.storage.storage_env import open_storage_env


@pytest.fixture
def dialect() -> str:
    """Nothing here depends on the database."""
    return "sqlite"


@pytest.fixture
async def env(database: Database, tmp_path: Path) -> AsyncIterator[GatewayEnv]:
    images = PillowRenderer(BwrapSandbox(tmp_path))
    yield await open_gateway_env(database, open_storage_env(database, tmp_path), images)
    await images.close()
