"""Transfers: begin one, add its parts in their order, and when it is whole it is a file; end it, or let it expire.

Who knows a transfer's address (its token is 256 random bits) may go on with it: the clients of signed addresses have
nothing else to show. The draft stays until the file is published, so whatever is cut off in between is done again.
"""

import hashlib
from collections.abc import AsyncGenerator, AsyncIterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from sqlalchemy import Connection

from roost.core import clock, ids
from roost.core.daemon_thread import run_in_daemon_thread
from roost.core.db import Database
from roost.core.problem import Problem, ProblemKind
from roost.drivers.blob.contract import BlobNotFound
from roost.drivers.blob.drafts import DraftFile, DraftStore
from roost.identity import tenants
from roost.storage.content.service import ContentService
from roost.storage.files import metadata_parsing
from roost.storage.files.errors import StorageQuotaExceeded
from roost.storage.files.model import File
from roost.storage.tus import store
from roost.storage.tus.errors import InvalidTusUpload, TooManyTusUploads, TusUploadNotFound, UploadOffsetMismatch
from roost.storage.tus.model import LIFETIME, UNFINISHED_LIMIT, NewTusUpload, TusUpload
from roost.storage.tus.upload_session import UploadSession
from roost.storage.unixfs.importer import DagTree, UnixfsImporter
from roost.storage.uploads.errors import UploadTooLarge
from roost.storage.uploads.metadata import label_of
from roost.storage.uploads.mime_sniffing import HEAD
from roost.storage.uploads.model import UploadedPart, UploadMetadata, UploadRequestLimits
from roost.storage.uploads.service import UploadService
from roost.storage.uploads.upload_paths import path_of

_HOPELESS = frozenset(
    {ProblemKind.INVALID, ProblemKind.MISSING, ProblemKind.FORBIDDEN, ProblemKind.TOO_LARGE, ProblemKind.CONFLICT}
)
_AT_ONCE = 100


class TusUploadService:
    def __init__(
        self, db: Database, drafts: DraftStore, content: ContentService, uploads: UploadService, uploads_url: str
    ) -> None:
        self._db = db
        self._drafts = drafts
        self._content = content
        self._uploads = uploads
        self.uploads_url = uploads_url
        self._busy: set[str] = set()

    async def begin(self, opening: NewTusUpload) -> tuple[TusUpload, str]:
        """A transfer and its token. It ends another of the same file: a signed address is leave to upload one.

        Raises InvalidMetadata, InvalidUpload, InvalidTransfer, UploadTooLarge, StorageFull, TooManyTransfers,
        BlobFailed.
        """
        label = label_of(opening.fields)
        path_of(_filename(opening.fields))
        transfer = _begun(opening, label, await self._limit(opening))
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
        """How far it is; one that is whole is a file when this returns.

        Raises TransferMissing, and what `append` raises of a file that cannot be.
        """
        transfer = await self._find(file_id, token)
        if transfer.is_whole and transfer.cid is None and transfer.id not in self._busy:
            async with self._alone(transfer) as present:
                return await self._settled(present)
        return transfer

    async def append(
        self, file_id: str, token: str, offset: int, stream: AsyncIterable[bytes], length: int | None = None
    ) -> TusUpload:
        """Add a part that begins at `offset`. The one that makes it whole makes it a file. length: told only now.

        Raises TransferMissing, OutOfStep, InvalidTransfer, UploadTooLarge, InvalidMetadata, InvalidUpload, TypeRefused,
        GroupMissing, StorageFull, BlobFailed. What came before the part failed is kept, but where the file cannot be.
        """
        async with self._alone(await self._find(file_id, token)) as present:
            if offset != present.offset:
                raise UploadOffsetMismatch(present.offset, present.cid)
            if present.cid is not None:
                return present
            transfer = present if length is None else await self._measured(present, length)
            async with self._drafts.open(transfer.id, transfer.offset) as draft:
                sitting = await UploadSession.begin(self._db, draft, transfer, self._expect)
                advanced = await sitting.take(stream)
            return await self._settled(advanced)

    async def end(self, file_id: str, token: str) -> None:
        """What came is gone; a file that it became stays. Raises TransferMissing, OutOfStep."""
        async with self._alone(await self._find(file_id, token)) as transfer:
            await self._remove(transfer.id)

    async def expire(self) -> int:
        """End those whose time is over, and remove what crashes left; how many there were."""
        over = await self._db.read(lambda connection: store.expired(connection, clock.utc_now(), _AT_ONCE))
        idle = [transfer_id for transfer_id in over if transfer_id not in self._busy]
        for transfer_id in idle:
            await self._remove(transfer_id)
        return len(idle) + await self._drafts.sweep(2 * LIFETIME)

    async def _find(self, file_id: str, token: str) -> TusUpload:
        digest = _digest(token)
        found = await self._db.read(lambda connection: store.find(connection, file_id, digest, clock.utc_now()))
        if found is None:
            raise TusUploadNotFound
        return found

    @asynccontextmanager
    async def _alone(self, transfer: TusUpload) -> AsyncGenerator[TusUpload]:
        """The transfer as it is now, for one at a time."""
        if transfer.id in self._busy:
            raise UploadOffsetMismatch(transfer.offset)
        self._busy.add(transfer.id)
        try:
            present = await self._db.read(lambda connection: store.get(connection, transfer.id))
            if present is None:
                raise TusUploadNotFound
            yield present
        finally:
            self._busy.discard(transfer.id)

    async def _limit(self, opening: NewTusUpload) -> int:
        limit = await self._uploads.limit(opening.tenant_id)
        if opening.max_size is not None:
            limit = min(limit, opening.max_size)
        if opening.length is not None and opening.length > limit:
            raise UploadTooLarge
        return limit

    async def _measured(self, transfer: TusUpload, length: int) -> TusUpload:
        if length > transfer.limit:
            raise UploadTooLarge
        if length < transfer.offset or transfer.length not in {None, length}:
            raise InvalidTusUpload("Upload-Length is another than before")
        await self._db.write(lambda connection: self._set_length(connection, transfer, length))
        return replace(transfer, length=length)

    def _add(self, connection: Connection, transfer: TusUpload, token: str) -> Sequence[str]:
        tenant = tenants.lock_tenant(connection, transfer.tenant_id)
        replaced = store.remove_unfinished(connection, transfer.file_id)
        count, expected = store.unfinished(connection, tenant.id, transfer.created_at)
        if count >= UNFINISHED_LIMIT:
            raise TooManyTusUploads
        self._uploads.expect(connection, tenant, expected + (transfer.length or 0))
        store.add(connection, transfer, _digest(token))
        return replaced

    def _set_length(self, connection: Connection, transfer: TusUpload, length: int) -> None:
        self._expect(connection, transfer, length)
        store.set_length(connection, transfer.id, length)

    def _expect(self, connection: Connection, transfer: TusUpload, length: int) -> None:
        """That there is room for so many bytes in place of those that it has. Raises StorageFull."""
        tenant = tenants.lock_tenant(connection, transfer.tenant_id)
        _, expected = store.unfinished(connection, tenant.id, clock.utc_now())
        self._uploads.expect(connection, tenant, expected - (transfer.length or transfer.offset) + length)

    async def _settled(self, transfer: TusUpload) -> TusUpload:
        """The transfer, a file by now when it is whole. One that can never be a file ends."""
        if not transfer.is_whole or transfer.cid is not None:
            return transfer
        try:
            file = await self._publish(transfer)
        except Problem as problem:
            if problem.kind in _HOPELESS and not isinstance(problem, BlobNotFound):  # another server may have the draft
                await self._remove(transfer.id)
            raise
        await self._db.write(lambda connection: store.finish(connection, transfer.id, file.cid))
        await self._drafts.remove(transfer.id)
        return replace(transfer, cid=file.cid)

    async def _publish(self, transfer: TusUpload) -> File:
        async with self._drafts.open(transfer.id, transfer.offset) as draft:
            tree = await self._tree(draft, transfer)
            head = await draft.read(0, min(HEAD, transfer.offset))
        pack_id = ids.random_bytes(16).hex()
        whole = self._drafts.object_writer(transfer.id, pack_id)
        receiver = self._content.receive_written(whole, transfer.profile, pack_id, tree)
        order = UploadRequestLimits(
            transfer.tenant_id, transfer.profile, transfer.file_id, transfer.limit, transfer.mime_types
        )
        part = UploadedPart(path_of(_filename(transfer.fields)), tree, head)
        return await self._uploads.publish(order, receiver, [part], label_of(transfer.fields))

    async def _tree(self, draft: DraftFile, transfer: TusUpload) -> DagTree:
        leaves = await self._db.read(lambda connection: store.leaves(connection, transfer.id))
        rest = await draft.read(transfer.hashed, transfer.offset - transfer.hashed)

        def build() -> DagTree:
            importer = UnixfsImporter.resumed(transfer.profile, leaves)
            importer.update(rest)
            return importer.finish()

        return await run_in_daemon_thread(build)

    async def _remove(self, transfer_id: str) -> None:
        await self._db.write(lambda connection: store.remove(connection, transfer_id))
        await self._drafts.remove(transfer_id)


def _begun(opening: NewTusUpload, label: UploadMetadata, limit: int) -> TusUpload:
    now = clock.utc_now()
    return TusUpload(
        id=ids.random_bytes(16).hex(),
        file_id=opening.file_id,
        tenant_id=opening.tenant_id,
        length=opening.length,
        limit=limit,
        fields=opening.fields,
        mime_types=opening.mime_types,
        profile=label.profile or metadata_parsing.profile(None),
        created_at=now,
        expires_at=now + LIFETIME,
    )


def _filename(fields: Mapping[str, str]) -> str:
    """The file's own name: a folder in front of it means nothing to one file."""
    return fields.get("filename", "").rpartition("/")[2] or "file"


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
