"""Resumable uploads: begin, append parts in order, and publish a file when complete; terminate or expire.

The URL of an upload has a token of 256 random bits and is its only credential. The draft stays until the file is
published, so an interrupted step is repeated.
"""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from roost.core import clock, ids
from roost.core.db import Connection, Database
from roost.core.machine.threads import run_in_daemon_thread
from roost.core.problem import Problem, ProblemKind
from roost.drivers.blob.contract import BlobNotFound
from roost.drivers.blob.drafts import DraftFile, DraftStore
from roost.identity import tenants
from roost.storage.content.chunk_pipeline import ChunkPipeline
from roost.storage.content.service import ContentService
from roost.storage.content.unixfs.cid import DIGEST
from roost.storage.content.unixfs.importer import DagTree, UnixfsImporter
from roost.storage.files import metadata_parsing
from roost.storage.files.model import File, StorageQuotaExceeded
from roost.storage.files.tus import store
from roost.storage.files.tus.model import (
    IDLE_SECONDS,
    LIFETIME,
    SAVE_EVERY,
    UNFINISHED_LIMIT,
    InvalidTusUpload,
    NewTusUpload,
    TooManyTusUploads,
    TusUpload,
    TusUploadNotFound,
    UploadNotHere,
    UploadOffsetMismatch,
)
from roost.storage.files.uploads.mime_sniffing import SNIFFED_BYTES
from roost.storage.files.uploads.model import (
    UploadedPart,
    UploadMetadata,
    UploadRequestLimits,
    UploadTooLarge,
    parse_upload_metadata,
    parse_upload_path,
)
from roost.storage.files.uploads.service import UploadService

_PERMANENT_ERRORS = frozenset(
    {ProblemKind.INVALID, ProblemKind.MISSING, ProblemKind.FORBIDDEN, ProblemKind.TOO_LARGE, ProblemKind.CONFLICT}
)
_EXPIRE_BATCH = 100


find_host = store.find_host  # for requests that arrive at another server


class TusUploadService:
    def __init__(
        self,
        db: Database,
        drafts: DraftStore,
        content: ContentService,
        uploads: UploadService,
        uploads_url: str,
        host_id: str | None = None,
    ) -> None:
        self._db = db
        self._host_id = host_id
        self._drafts = drafts
        self._content = content
        self._uploads = uploads
        self.uploads_url = uploads_url
        self._busy: set[str] = set()

    async def begin(self, creation: NewTusUpload, part_size: int = 0) -> tuple[TusUpload, str]:
        """Create an upload and its token; replace an unfinished one of the same file id.

        part_size: the announced bytes of a part in the same request.

        Raises InvalidFileMetadata, InvalidUpload, InvalidTusUpload, UploadTooLarge, StorageQuotaExceeded,
        TooManyTusUploads, BlobStoreFailed.
        """
        metadata = parse_upload_metadata(creation.fields)
        parse_upload_path(_filename(creation.fields))
        transfer = _new_transfer(creation, metadata, await self._size_limit(creation), self._host_id)
        transfer.check_end(part_size)
        token = ids.random_bytes(32).hex()
        await self._drafts.create(transfer.id)
        try:
            replaced = await self._db.write(lambda connection: self._add(connection, transfer, token))
        except (TooManyTusUploads, StorageQuotaExceeded):
            await self._drafts.remove(transfer.id)
            raise
        for transfer_id in replaced:
            await self._drafts.remove(transfer_id)
        return transfer, token

    async def find(self, file_id: str, token: str) -> TusUpload:
        """Return the upload; publish a complete one first. Raises TusUploadNotFound and the errors of publishing."""
        transfer = await self._find(file_id, token)
        if transfer.is_whole and transfer.cid is None and transfer.id not in self._busy:
            async with self._lock_transfer(transfer) as present:
                return await self._publish_if_whole(present)
        return transfer

    async def append(
        self,
        file_id: str,
        token: str,
        offset: int,
        stream: AsyncIterable[bytes],
        length: int | None = None,
        part_size: int = 0,
    ) -> TusUpload:
        """Append a part that begins at `offset`, and publish a complete upload. length: set for a deferred length.

        Received bytes are kept if the part fails, unless the file is invalid or `part_size`, the announced bytes of the
        part, is too large. Raises TusUploadNotFound, UploadOffsetMismatch, InvalidTusUpload, UploadTooLarge,
        UploadNotHere and the errors of publishing.
        """
        async with self._lock_transfer(await self._find(file_id, token)) as present:
            if offset != present.offset:
                raise UploadOffsetMismatch(present.offset, present.cid)
            if present.cid is not None:
                return present
            transfer = present if length is None else await self._with_length(present, length)
            transfer.check_end(offset + part_size)
            async with self._open_draft(transfer) as draft:
                advanced = await _PartReceiver(self._db, draft, transfer, self._check_capacity).receive(stream)
            return await self._publish_if_whole(advanced)

    async def terminate(self, file_id: str, token: str) -> None:
        """Delete the upload; its published file stays. Raises TusUploadNotFound, UploadOffsetMismatch."""
        async with self._lock_transfer(await self._find(file_id, token)) as transfer:
            await self._remove(transfer.id)

    async def expire(self) -> int:
        """Delete expired uploads and remains of crashes; return their number."""
        over = await self._db.read(lambda connection: store.list_expired(connection, clock.utc_now(), _EXPIRE_BATCH))
        idle = [transfer_id for transfer_id in over if transfer_id not in self._busy]
        for transfer_id in idle:
            await self._remove(transfer_id)
        return len(idle) + await self._drafts.sweep(2 * LIFETIME)

    async def _find(self, file_id: str, token: str) -> TusUpload:
        digest = _digest(token)
        found = await self._db.read(
            lambda connection: store.find_by_token(connection, file_id, digest, clock.utc_now())
        )
        if found is None:
            raise TusUploadNotFound
        return found

    @asynccontextmanager
    async def _lock_transfer(self, transfer: TusUpload) -> AsyncGenerator[TusUpload]:
        """Lock the upload in this process and return its current state."""
        if transfer.id in self._busy:
            raise UploadOffsetMismatch(transfer.offset)
        self._busy.add(transfer.id)
        try:
            present = await self._db.read(lambda connection: store.find_transfer(connection, transfer.id))
            if present is None:
                raise TusUploadNotFound
            yield present
        finally:
            self._busy.discard(transfer.id)

    @asynccontextmanager
    async def _open_draft(self, transfer: TusUpload) -> AsyncGenerator[DraftFile]:
        """Open the bytes received so far. Raises UploadNotHere, BlobStoreFailed."""
        try:
            async with self._drafts.open(transfer.id, transfer.offset) as draft:
                yield draft
        except BlobNotFound:
            raise UploadNotHere from None

    async def _size_limit(self, creation: NewTusUpload) -> int:
        limit = await self._uploads.size_limit(creation.tenant_id)
        if creation.max_size is not None:
            limit = min(limit, creation.max_size)
        if creation.length is not None and creation.length > limit:
            raise UploadTooLarge
        return limit

    async def _with_length(self, transfer: TusUpload, length: int) -> TusUpload:
        if length > transfer.limit:
            raise UploadTooLarge
        if length < transfer.offset or transfer.length not in {None, length}:
            raise InvalidTusUpload("Upload-Length must not change")
        await self._db.write(lambda connection: self._set_length(connection, transfer, length))
        return replace(transfer, length=length)

    def _add(self, connection: Connection, transfer: TusUpload, token: str) -> Sequence[str]:
        tenant = tenants.lock_tenant(connection, transfer.tenant_id)
        replaced = store.delete_unfinished(connection, transfer.file_id)
        count, expected = store.count_unfinished(connection, tenant.id, transfer.created_at)
        if count >= UNFINISHED_LIMIT:
            raise TooManyTusUploads
        self._uploads.quota.check(connection, tenant, expected + (transfer.length or 0))
        store.insert_transfer(connection, transfer, _digest(token))
        return replaced

    def _set_length(self, connection: Connection, transfer: TusUpload, length: int) -> None:
        self._check_capacity(connection, transfer, length)
        store.set_length(connection, transfer.id, length)

    def _check_capacity(self, connection: Connection, transfer: TusUpload, length: int) -> None:
        """Check that the upload fits with a new length. Raises StorageQuotaExceeded."""
        tenant = tenants.lock_tenant(connection, transfer.tenant_id)
        _, expected = store.count_unfinished(connection, tenant.id, clock.utc_now())
        self._uploads.quota.check(connection, tenant, expected - (transfer.length or transfer.offset) + length)

    async def _publish_if_whole(self, transfer: TusUpload) -> TusUpload:
        """Publish a complete upload; delete it if it can never be published."""
        if not transfer.is_whole or transfer.cid is not None:
            return transfer
        try:
            file = await self._publish(transfer)
        except Problem as problem:
            # Without its draft the upload is kept: the draft may be on another server.
            if problem.kind in _PERMANENT_ERRORS and not isinstance(problem, BlobNotFound):
                await self._remove(transfer.id)
            raise
        await self._db.write(lambda connection: store.mark_finished(connection, transfer.id, file.cid))
        await self._drafts.remove(transfer.id)
        return replace(transfer, cid=file.cid)

    async def _publish(self, transfer: TusUpload) -> File:
        async with self._open_draft(transfer) as draft:
            tree = await self._build_tree(draft, transfer)
            head = await draft.read(0, min(SNIFFED_BYTES, transfer.offset))
        pack_id = ids.random_bytes(16).hex()
        whole = self._drafts.object_writer(transfer.id, pack_id)
        receiver = self._content.receive_written(whole, transfer.profile, pack_id, tree)
        limits = UploadRequestLimits(
            transfer.tenant_id, transfer.profile, transfer.file_id, transfer.limit, transfer.mime_types
        )
        part = UploadedPart(parse_upload_path(_filename(transfer.fields)), tree, head)
        return await self._uploads.publish(limits, receiver, [part], parse_upload_metadata(transfer.fields))

    async def _build_tree(self, draft: DraftFile, transfer: TusUpload) -> DagTree:
        leaves = await self._db.read(lambda connection: store.leaf_digests(connection, transfer.id))
        rest = await draft.read(transfer.hashed, transfer.offset - transfer.hashed)

        def build() -> DagTree:
            importer = UnixfsImporter.resume(transfer.profile, leaves)
            importer.update(rest)
            return importer.finish()

        return await run_in_daemon_thread(build)

    async def _remove(self, transfer_id: str) -> None:
        await self._db.write(lambda connection: store.delete_transfer(connection, transfer_id))
        await self._drafts.remove(transfer_id)


class _PartReceiver:
    """Reception of one part of an upload: write and hash it, and save progress in steps.

    A step is on disk before its row is committed, so acknowledged bytes survive a crash. Hashing resumes after the last
    stored leaf digest and reads less than two leaves again. `check_capacity` checks, in a transaction, that an upload
    of that many bytes fits, and raises StorageQuotaExceeded.
    """

    def __init__(
        self,
        db: Database,
        draft: DraftFile,
        transfer: TusUpload,
        check_capacity: Callable[[Connection, TusUpload, int], None],
    ) -> None:
        self._db = db
        self._check_capacity = check_capacity
        self._draft = draft
        self._importer = UnixfsImporter(transfer.profile)
        self._pipeline = ChunkPipeline(self._importer.update, draft.write)
        self._received = transfer.offset
        self._from = transfer.hashed
        self.transfer = transfer

    async def receive(self, stream: AsyncIterable[bytes]) -> TusUpload:
        """Receive a stream at the end of the draft and save it, also if it is cut off.

        Raises BlobNotFound, and the errors of `write` and of the stream.
        """
        hashed, offset = self.transfer.hashed, self.transfer.offset
        self._importer.update(await self._draft.read(hashed, offset - hashed))
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


def _new_transfer(creation: NewTusUpload, metadata: UploadMetadata, limit: int, host_id: str | None) -> TusUpload:
    now = clock.utc_now()
    return TusUpload(
        id=ids.random_bytes(16).hex(),
        file_id=creation.file_id,
        tenant_id=creation.tenant_id,
        length=creation.length,
        limit=limit,
        fields=creation.fields,
        metadata=creation.metadata,
        mime_types=creation.mime_types,
        profile=metadata.profile or metadata_parsing.parse_profile(None),
        created_at=now,
        expires_at=now + LIFETIME,
        host_id=host_id,
    )


def _filename(fields: Mapping[str, str]) -> str:
    """Return the file name without folders, which a single file does not need."""
    return fields.get("filename", "").rpartition("/")[2] or "file"


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


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
