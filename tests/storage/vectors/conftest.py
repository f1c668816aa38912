from collections.abc import AsyncIterator

import pytest

from roost.core.db import Database
from tests.storage.storage_env import StorageEnv
from tests.storage.vectors.vector_env import VectorEnv, open_vector_env


@pytest.fixture
async def vector_env(database: Database, env: StorageEnv) -> AsyncIterator[VectorEnv]:
    async with open_vector_env(database, env) as opened:
        yield opened
