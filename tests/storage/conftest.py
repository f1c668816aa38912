import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from roost.core.db import Database
from tests.storage.storage_env import StorageEnv, open_storage_env
from tests.support.databases import in_memory


@pytest.fixture
def env(database: Database, tmp_path: Path) -> StorageEnv:
    return open_storage_env(database, tmp_path)


@pytest.fixture
def quick_folder() -> Iterator[Path]:
    """Return a folder in memory if possible, for files that need not survive the machine."""
    folder = Path(tempfile.mkdtemp(prefix="roost-", dir=in_memory()))
    yield folder
    shutil.rmtree(folder)
