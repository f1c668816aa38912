"""Reception of one part of a resumable upload: write and hash it, and save progress in steps.

A step is on disk before its row is committed, so acknowledged bytes survive a crash. Hashing resumes after the last
stored leaf digest and reads less than two leaves again.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Callable
from dataclasses import replace

from sqlalchemy import Connection

from roost.core.db import Database
from roost.drivers.blob.drafts import DraftFile
from roost.storage.content.chunk_pipeline import ChunkPipeline
from roost.storage.content.unixfs.cid import DIGEST
from roost.storage.content.unixfs.importer import UnixfsImporter
from roost.storage.files.tus import store
from roost.storage.files.tus.model import IDLE_SECONDS, SAVE_EVERY, TusUpload, UploadOffsetMismatch

CheckCapacity = Callable[[Connection, TusUpload, int], None]
"""Check, in a transaction, that an upload of that many bytes fits. Raises StorageQuotaExceeded."""


class UploadSession:
    def __init__(
        self,
        db: Database,
        draft: DraftFile,
        transfer: TusUpload,
        importer: UnixfsImporter,
        check_capacity: CheckCapacity,
    ) -> None:
        self._db = db
        self._check_capacity = check_capacity
        self._draft = draft
        self._importer = importer
        self._pipeline = ChunkPipeline(importer.update, draft.write)
        self._received = transfer.offset
        self._from = transfer.hashed
        self.transfer = transfer

    @classmethod
    async def begin(
        cls, db: Database, draft: DraftFile, transfer: TusUpload, check_capacity: CheckCapacity
    ) -> "UploadSession":
        """Open a session at the end of the draft. Raises BlobNotFound, BlobStoreFailed."""
        importer = UnixfsImporter(transfer.profile)
        importer.update(await draft.read(transfer.hashed, transfer.offset - transfer.hashed))
        return cls(db, draft, transfer, importer, check_capacity)

    async def receive(self, stream: AsyncIterable[bytes]) -> TusUpload:
        """Receive a stream and save it, also if it is cut off. Raises the errors of `write` and of the stream."""
        try:
            async for chunk in _until_idle(stream):
                await self.write(chunk)
            await self._pipeline.flush()
        finally:
            await self.save()
        return self.transfer

    async def write(self, data: bytes) -> None:
        """Write bytes. Raises UploadTooLarge, InvalidTusUpload and the errors of saving."""
        self.transfer.check_end(self._received + len(data))
        self._received += len(data)
        await self._pipeline.add(data)
        if self._received - self.transfer.offset >= SAVE_EVERY:
            await self.save()

    async def save(self) -> None:
        """Save and acknowledge progress. Raises StorageQuotaExceeded, BlobStoreFailed, UploadOffsetMismatch."""
        await self._pipeline.join()
        if self._pipeline.failed:  # written and hashed bytes may differ, so the last save counts
            return
        await self._pipeline.flush()
        before = self.transfer
        if self._draft.size == before.offset:
            return
        await self._draft.sync()
        digests = self._importer.leaves[(before.hashed - self._from) // before.profile.chunk * DIGEST :]
        hashed = before.hashed + len(digests) // DIGEST * before.profile.chunk
        after = replace(before, offset=self._draft.size, hashed=hashed)

        def advance(connection: Connection) -> bool:
            if before.length is None:  # a known length was reserved when it was set
                self._check_capacity(connection, before, after.offset)
            return store.save_progress(connection, before, after, digests)

        if not await self._db.write(advance):
            raise UploadOffsetMismatch(before.offset)
        self.transfer = after


async def _until_idle(stream: AsyncIterable[bytes]) -> AsyncGenerator[bytes]:
    """End the stream after IDLE_SECONDS without data; the client resumes from the saved offset."""
    chunks = aiter(stream)
    while True:
        try:
            async with asyncio.timeout(IDLE_SECONDS):
                chunk = await anext(chunks)
        except (StopAsyncIteration, TimeoutError):
            return
        yield chunk
