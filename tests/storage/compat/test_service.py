"""The older API's verbs over real content: by CID, of public files alone."""

import pytest

from roost.identity.caller import Plan
from roost.storage.compat.errors import PinNotFoundByCid
from roost.storage.compat.service import LegacyPinService
from roost.storage.content.model import ContentNetwork, ContentScope
from roost.storage.files.model import FileMetadata, PinFilter
from roost.storage.files.service import FileService
from roost.storage.unixfs.cid import Cid
from roost.storage.unixfs.errors import InvalidCid
from roost.storage.unixfs.profile import V0
from roost.storage.uploads.model import UploadMetadata
from roost.storage.uploads.service import UploadService
from tests.storage.house import House

PUBLIC = UploadMetadata(ContentNetwork.PUBLIC)


@pytest.fixture
def dialect() -> str:
    return "sqlite"


@pytest.fixture
def legacy(place: House) -> LegacyPinService:
    files = FileService(place.db)
    return LegacyPinService(place.db, files, UploadService(place.db, place.content, files, dict.fromkeys(Plan, 1000)))


async def content(place: House, cid: str) -> bytes:
    scope = ContentScope(ContentNetwork.PUBLIC, place.tenant_id)
    stat = await place.reader.stat(scope, Cid.parse(cid))
    return b"".join([piece async for piece in place.reader.stream_file(scope, stat)])


async def test_json_is_kept_as_a_file(place: House, legacy: LegacyPinService) -> None:
    file = await legacy.pin_json(place.tenant_id, b'{"a":1}', PUBLIC)
    assert (file.network, file.mime_type, file.note.name) == (ContentNetwork.PUBLIC, "application/json", "data.json")
    assert await content(place, file.cid) == b'{"a":1}'


async def test_every_spelling_of_a_cid_unpins(place: House, legacy: LegacyPinService) -> None:
    for spelling in (str, lambda cid: str(cid.v1())):
        file = await legacy.pin_json(place.tenant_id, b"{}", UploadMetadata(ContentNetwork.PUBLIC, profile=V0))
        await legacy.unpin(place.tenant_id, spelling(Cid.parse(file.cid)))
        with pytest.raises(PinNotFoundByCid):
            await legacy.unpin(place.tenant_id, file.cid)
    found, count = await FileService(place.db).list_pins(place.tenant_id, PinFilter(), 10, 0)
    assert count == 2  # what was unpinned is told of, too
    assert all(file.deleted_at is not None for file in found)


async def test_what_is_private_or_another_s_is_not_pinned(place: House, legacy: LegacyPinService) -> None:
    private = await legacy.pin_json(place.tenant_id, b'{"a":1}', UploadMetadata(ContentNetwork.PRIVATE))
    public = await legacy.pin_json(place.tenant_id, b'{"a":2}', PUBLIC)
    for tenant, cid in ((place.tenant_id, private.cid), (place.other_id, public.cid)):
        with pytest.raises(PinNotFoundByCid):
            await legacy.unpin(tenant, cid)
        with pytest.raises(PinNotFoundByCid):
            await legacy.update_metadata(tenant, cid, lambda note: note)
    with pytest.raises(InvalidCid):
        await legacy.unpin(place.tenant_id, "nonsense")


async def test_a_note_is_changed(place: House, legacy: LegacyPinService) -> None:
    file = await legacy.pin_json(place.tenant_id, b"{}", PUBLIC)
    await legacy.update_metadata(place.tenant_id, file.cid, lambda note: FileMetadata("m", {**note.keyvalues, "a": 1}))
    (changed,), _ = await FileService(place.db).list_pins(place.tenant_id, PinFilter(), 10, 0)
    assert changed.note == FileMetadata("m", {"a": 1})
