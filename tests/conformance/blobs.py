"""Every blob store, made in a folder of the test's."""

from collections.abc import Callable
from pathlib import Path

import pytest

from roost.drivers.blob.contract import BlobStore
from roost.drivers.blob.folder import FolderStore
from roost.drivers.blob.memory import MemoryStore

STORES: list[Callable[[Path], BlobStore]] = [lambda folder: FolderStore(folder / "blobs"), lambda _: MemoryStore()]


@pytest.fixture(params=STORES, ids=["folder", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> BlobStore:
    return request.param(tmp_path)
