import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from roost.core.db import Database
from tests.databases import in_memory
from tests.storage.house import House, house


@pytest.fixture
def place(database: Database, tmp_path: Path) -> House:
    return house(database, tmp_path)


@pytest.fixture
def quick_folder() -> Iterator[Path]:
    """A folder in memory where there is one: what only processes have to survive need not wait for a disk."""
    folder = Path(tempfile.mkdtemp(prefix="roost-", dir=in_memory()))
    yield folder
    shutil.rmtree(folder)
