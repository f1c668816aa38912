"""Operations of the pinning API from before `/v3` that the current API does not have: JSON uploads, files by CID."""

from collections.abc import Callable

from roost.core.db import Database
from roost.storage.compat.errors import PinNotFoundByCid
from roost.storage.compat.json_parser_pool import JsonParserPool
from roost.storage.content.model import ContentNetwork
from roost.storage.content.unixfs.cid import Cid
from roost.storage.files.model import File, FileMetadata
from roost.storage.files.service import FileService, find_by_cid
from roost.storage.files.uploads.model import UploadMetadata, UploadRequestLimits
from roost.storage.files.uploads.service import UploadService


class LegacyPinService:
    def __init__(self, db: Database, files: FileService, uploads: UploadService) -> None:
        self._db = db
        self._files = files
        self._uploads = uploads
        self.parsers = JsonParserPool()

    async def pin_json(self, tenant_id: str, content: bytes, metadata: UploadMetadata) -> File:
        """Store JSON as a file. Raises the errors of uploads."""
        async with self._uploads.begin(UploadRequestLimits(tenant_id)) as upload:
            await upload.write(content)
            await upload.end_file("data.json")
            return await upload.finish(metadata)

    async def unpin(self, tenant_id: str, cid: str) -> None:
        """Delete the public file of a CID. Raises InvalidCid, PinNotFoundByCid."""
        file = await self._find(tenant_id, cid)
        await self._files.delete(tenant_id, ContentNetwork.PUBLIC, file.id)

    async def update_metadata(self, tenant_id: str, cid: str, change: Callable[[FileMetadata], FileMetadata]) -> None:
        """Change the metadata of the public file of a CID. Raises InvalidCid, PinNotFoundByCid, InvalidFileMetadata."""
        file = await self._find(tenant_id, cid)
        await self._files.change(tenant_id, ContentNetwork.PUBLIC, file.id, change)

    async def _find(self, tenant_id: str, text: str) -> File:
        cid = Cid.parse(text)
        file = await self._db.read(lambda connection: find_by_cid(connection, tenant_id, ContentNetwork.PUBLIC, cid))
        if file is None:
            raise PinNotFoundByCid
        return file
