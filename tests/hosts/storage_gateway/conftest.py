from pathlib import Path

import pytest

from roost.core.db import Database
from tests.hosts.storage_gateway.visits import Visits, visits
from tests.storage.house import house


@pytest.fixture
def dialect() -> str:
    """Nothing here depends on the database."""
    return "sqlite"


@pytest.fixture
async def visit(database: Database, tmp_path: Path) -> Visits:
    return await visits(database, house(database, tmp_path))
