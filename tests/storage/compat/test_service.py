"""The older API on real content: by CID, public files only."""

import pytest

from roost.identity.caller import Plan
from roost.storage.compat.service import LegacyPinService, PinNotFoundByCid
from roost.storage.content.model import ContentNetwork, ContentScope
from roost.storage.content.unixfs.cid import Cid
from roost.storage.content.unixfs.errors import InvalidCid
from roost.storage.content.unixfs.profile import V0
from roost.storage.files.model import FileMetadata, PinFilter
from roost.storage.files.service import FileService
from roost.storage.files.uploads.model import UploadMetadata
from roost.storage.files.uploads.service import UploadService
from tests.storage.storage_env import StorageEnv

PUBLIC = UploadMetadata(ContentNetwork.PUBLIC)


@pytest.fixture
def dialect() -> str:
    return "sqlite"


@pytest.fixture
def legacy(env: StorageEnv) -> LegacyPinService:
    files = FileService(env.db)
    return LegacyPinService(env.db, files, UploadService(env.db, env.content, files, dict.fromkeys(Plan, 1000)))


async def content(env: StorageEnv, cid: str) -> bytes:
    scope = ContentScope(ContentNetwork.PUBLIC, env.tenant_id)
    stat = await env.reader.stat(scope, Cid.parse(cid))
    return b"".join([piece async for piece in env.reader.stream_file(scope, stat)])


async def test_json_is_kept_as_a_file(env: StorageEnv, legacy: LegacyPinService) -> None:
    file = await legacy.pin_json(env.tenant_id, b'{"a":1}', PUBLIC)
    assert (file.network, file.mime_type, file.metadata.name) == (
        ContentNetwork.PUBLIC,
        "application/json",
        "data.json",
    )
    assert await content(env, file.cid) == b'{"a":1}'


async def test_every_spelling_of_a_cid_unpins(env: StorageEnv, legacy: LegacyPinService) -> None:
    for spelling in (str, lambda cid: str(cid.v1())):
        file = await legacy.pin_json(env.tenant_id, b"{}", UploadMetadata(ContentNetwork.PUBLIC, profile=V0))
        await legacy.unpin(env.tenant_id, spelling(Cid.parse(file.cid)))
        with pytest.raises(PinNotFoundByCid):
            await legacy.unpin(env.tenant_id, file.cid)
    found, count = await FileService(env.db).list_pins(env.tenant_id, PinFilter(), 10, 0)
    assert count == 2  # listeners are notified of unpinned files too
    assert all(file.deleted_at is not None for file in found)


async def test_private_and_foreign_files_are_not_listed_as_pins(env: StorageEnv, legacy: LegacyPinService) -> None:
    private = await legacy.pin_json(env.tenant_id, b'{"a":1}', UploadMetadata(ContentNetwork.PRIVATE))
    public = await legacy.pin_json(env.tenant_id, b'{"a":2}', PUBLIC)
    for tenant, cid in ((env.tenant_id, private.cid), (env.other_id, public.cid)):
        with pytest.raises(PinNotFoundByCid):
            await legacy.unpin(tenant, cid)
        with pytest.raises(PinNotFoundByCid):
            await legacy.update_metadata(tenant, cid, lambda note: note)
    with pytest.raises(InvalidCid):
        await legacy.unpin(env.tenant_id, "nonsense")


async def test_a_note_is_changed(env: StorageEnv, legacy: LegacyPinService) -> None:
    file = await legacy.pin_json(env.tenant_id, b"{}", PUBLIC)
    await legacy.update_metadata(env.tenant_id, file.cid, lambda note: FileMetadata("m", {**note.keyvalues, "a": 1}))
    (changed,), _ = await FileService(env.db).list_pins(env.tenant_id, PinFilter(), 10, 0)
    assert changed.metadata == FileMetadata("m", {"a": 1})
