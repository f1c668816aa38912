"""Pinning as it was before `/v3`: by form or as JSON, listed with offsets, found by CID."""

from collections.abc import Callable, Sequence

from roost.core.db import Database
from roost.storage.content.model import ContentNetwork
from roost.storage.files.model import File, FileMetadata, PinFilter
from roost.storage.files.service import FileService, named
from roost.storage.legacy.errors import PinNotFoundByCid
from roost.storage.legacy.reading import JsonParserPool
from roost.storage.unixfs.cid import Cid
from roost.storage.uploads.model import UploadMetadata, UploadRequestLimits
from roost.storage.uploads.service import UploadService


class LegacyPinService:
    def __init__(self, db: Database, files: FileService, uploads: UploadService) -> None:
        self._db = db
        self._files = files
        self._uploads = uploads
        self.reading = JsonParserPool()

    async def pin_json(self, tenant_id: str, content: bytes, label: UploadMetadata) -> File:
        """Keep JSON. Raises as uploads do."""
        async with self._uploads.begin(UploadRequestLimits(tenant_id)) as upload:
            await upload.write(content)
            await upload.end_file("data.json")
            return await upload.finish(label)

    async def list(self, tenant_id: str, chosen: PinFilter, limit: int, offset: int) -> tuple[Sequence[File], int]:
        """Some pins, newest first, and how many there are."""
        return await self._files.pins(tenant_id, chosen, limit, offset)

    async def total(self, tenant_id: str) -> tuple[int, int]:
        """How many pins the tenant has, and their bytes."""
        return await self._files.total(tenant_id, ContentNetwork.PUBLIC)

    async def unpin(self, tenant_id: str, cid: str) -> None:
        """Raises InvalidCid, NotPinned."""
        file = await self._pinned(tenant_id, cid)
        await self._files.delete(tenant_id, ContentNetwork.PUBLIC, file.id)

    async def note(self, tenant_id: str, cid: str, change: Callable[[FileMetadata], FileMetadata]) -> None:
        """Raises InvalidCid, NotPinned, InvalidMetadata."""
        file = await self._pinned(tenant_id, cid)

        await self._files.change(tenant_id, ContentNetwork.PUBLIC, file.id, change)

    async def _pinned(self, tenant_id: str, text: str) -> File:
        cid = Cid.parse(text)
        file = await self._db.read(lambda connection: named(connection, tenant_id, ContentNetwork.PUBLIC, cid))
        if file is None:
            raise PinNotFoundByCid
        return file
