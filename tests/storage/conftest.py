from pathlib import Path

import pytest

from roost.core.db import Database
from tests.storage.house import House, house


@pytest.fixture
def place(database: Database, tmp_path: Path) -> House:
    return house(database, tmp_path)
