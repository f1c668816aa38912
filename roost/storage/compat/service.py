"""Operations of the pinning API from before `/v3` that the current API does not have: JSON uploads, files by CID."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from roost.core.db import Database
from roost.core.machine.subprocess_worker import run_worker
from roost.core.problem import InvalidInput, TooManyRequests
from roost.storage.compat.json_extractor import extract_json
from roost.storage.content.model import ContentNetwork
from roost.storage.content.unixfs.cid import Cid
from roost.storage.files.model import File, FileMetadata
from roost.storage.files.service import FileService, find_by_cid
from roost.storage.files.uploads.model import UploadMetadata, UploadRequestLimits
from roost.storage.files.uploads.service import UploadService


class PinNotFoundByCid(InvalidInput):
    message = "The current user has not pinned the provided CID"

    def __init__(self) -> None:
        super().__init__(extra={"reason": "CURRENT_USER_HAS_NOT_PINNED_CID"})


class InvalidLegacyRequest(InvalidInput):
    message = "Invalid JSON body"


class TooManyJsonPins(TooManyRequests):
    message = "Too many large bodies at once"


INLINE_LIMIT = 64 * 1024
"""Bytes of JSON of any structure that can be parsed within some hundredths of a second."""
_PROGRAM = Path(__file__).with_name("json_extractor.py")
_PROCESSES = 2
_METADATA_LIMIT = 256 * 1024
"""Maximum bytes of the other members as JSON; more than the metadata of a file can have."""


class JsonParserPool:
    """Parser of JSON uploads: small bodies in this process, large ones in a bounded pool of worker processes."""

    def __init__(self, waiting: int = 16) -> None:
        """Limit the number of large bodies of each tenant, parsed or queued, to `waiting`."""
        self._workers = asyncio.Semaphore(_PROCESSES)
        self._limit = waiting
        self._waiting = Counter[str]()

    async def extract(self, tenant_id: str, body: bytes, member: str, *others: str) -> tuple[Sequence[object], bytes]:
        """Return the members `others` of an object, and `member` (or the whole object) as compact JSON.

        Raises InvalidLegacyRequest, TooManyJsonPins.
        """
        if len(body) <= INLINE_LIMIT:
            try:
                return extract_json(body, member, *others)
            except (ValueError, RecursionError):
                raise InvalidLegacyRequest from None
        if self._waiting[tenant_id] >= self._limit:
            raise TooManyJsonPins(retry_after=1)
        self._waiting[tenant_id] += 1
        try:
            async with self._workers:
                metadata, _, content = (await run_worker(body, _PROGRAM, member, *others)).partition(b"\n")
        finally:
            self._waiting[tenant_id] -= 1
            if not self._waiting[tenant_id]:  # tenants that wait for nothing take no memory
                del self._waiting[tenant_id]
        if not metadata or len(metadata) > _METADATA_LIMIT:
            raise InvalidLegacyRequest
        return json.loads(metadata), content


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
