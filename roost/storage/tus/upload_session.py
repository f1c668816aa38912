"""One sitting of an upload in parts: what comes is written and hashed side by side while more comes, and kept in steps.

A step is on the disk before its row says so, so what was acknowledged is there. Hashing goes on at the last leaf whose
digest was kept: what follows it, less than two leaves, is read again.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Callable
from dataclasses import replace

from sqlalchemy import Connection

from roost.core.db import Database
from roost.drivers.blob.drafts import DraftFile
from roost.storage.content.chunk_pipeline import ChunkPipeline
from roost.storage.tus import store
from roost.storage.tus.errors import InvalidTusUpload, UploadOffsetMismatch
from roost.storage.tus.model import IDLE, KEEP_EVERY, TusUpload
from roost.storage.unixfs.cid import DIGEST
from roost.storage.unixfs.importer import UnixfsImporter
from roost.storage.uploads.errors import UploadTooLarge

Expect = Callable[[Connection, TusUpload, int], None]
"""Makes sure, in a transaction, that there is room for so many bytes of a transfer. Raises StorageFull."""


class UploadSession:
    def __init__(
        self, db: Database, draft: DraftFile, transfer: TusUpload, importer: UnixfsImporter, expect: Expect
    ) -> None:
        self._db = db
        self._expect = expect
        self._draft = draft
        self._importer = importer
        self._pieces = ChunkPipeline(importer.update, draft.write)
        self._came = transfer.offset
        self._from = transfer.hashed
        self._end = transfer.limit if transfer.length is None else transfer.length
        self.transfer = transfer

    @classmethod
    async def begin(cls, db: Database, draft: DraftFile, transfer: TusUpload, expect: Expect) -> "UploadSession":
        """Raises BlobMissing, BlobFailed."""
        importer = UnixfsImporter(transfer.profile)
        importer.update(await draft.read(transfer.hashed, transfer.offset - transfer.hashed))
        return cls(db, draft, transfer, importer, expect)

    async def take(self, stream: AsyncIterable[bytes]) -> TusUpload:
        """All that comes, kept, also when it is cut off. Raises what `write` and the stream raise."""
        try:
            async for chunk in _awake(stream):
                await self.write(chunk)
            await self._pieces.flush()
        finally:
            await self.keep()
        return self.transfer

    async def write(self, data: bytes) -> None:
        """Raises UploadTooLarge, InvalidTransfer, StorageFull, BlobFailed, OutOfStep."""
        if self._came + len(data) > self._end:
            raise UploadTooLarge if self.transfer.length is None else InvalidTusUpload("More came than Upload-Length")
        self._came += len(data)
        await self._pieces.add(data)
        if self._came - self.transfer.offset >= KEEP_EVERY:
            await self.keep()

    async def keep(self) -> None:
        """What came is acknowledged from here on. Raises StorageFull, BlobFailed, OutOfStep."""
        await self._pieces.join()
        if self._pieces.failed:  # when only one of the two is done, what was kept last is all that counts
            return
        await self._pieces.flush()
        before = self.transfer
        if self._draft.size == before.offset:
            return
        await self._draft.sync()
        digests = self._importer.leaves[(before.hashed - self._from) // before.profile.chunk * DIGEST :]
        hashed = before.hashed + len(digests) // DIGEST * before.profile.chunk
        after = replace(before, offset=self._draft.size, hashed=hashed)

        def advance(connection: Connection) -> bool:
            if before.length is None:  # room for one that told its length is kept since then
                self._expect(connection, before, after.offset)
            return store.advance(connection, before, after, digests)

        if not await self._db.write(advance):
            raise UploadOffsetMismatch(before.offset)
        self.transfer = after


async def _awake(stream: AsyncIterable[bytes]) -> AsyncGenerator[bytes]:
    """The stream, ended when it brings nothing for too long: what came is kept, and the client goes on from there."""
    chunks = aiter(stream)
    while True:
        try:
            async with asyncio.timeout(IDLE):
                chunk = await anext(chunks)
        except (StopAsyncIteration, TimeoutError):
            return
        yield chunk
