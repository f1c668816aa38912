"""Every blob store, each in a folder or bucket of its own."""

import uuid
from pathlib import Path

import pytest

from roost.drivers.blob.contract import BlobStore
from roost.drivers.blob.folder_store import FolderStore
from roost.drivers.blob.object_store import ObjectStore
from tests.conformance import s3_server
from tests.conformance.s3_server import s3_address

__all__ = ["s3_address", "store"]
STORES = ["folder", "s3", "lax s3"]


@pytest.fixture(params=STORES)
async def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BlobStore:
    if request.param == "folder":
        return FolderStore(tmp_path / "blobs")
    bucket = f"{'lax' if request.param == 'lax s3' else 'b'}-{uuid.uuid4().hex}"
    found = ObjectStore(s3_server.use_bucket(monkeypatch, request.getfixturevalue("s3_address"), bucket))
    await found.probe()  # like a server at its start
    return found
