"""Uploads: `begin`, `write` files, `finish`. An unfinished upload leaves no trace.

Forms, resumable uploads and pins share this path: bytes stream into one pack, limited by the tenant's plan, and one
transaction publishes the file.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from sqlalchemy import Connection

from roost.core.db import Database
from roost.core.machine.threads import run_in_daemon_thread
from roost.identity import tenants
from roost.storage.content.receiver import ContentReceiver, PackReceiver, add_folder_tree
from roost.storage.content.service import ContentService
from roost.storage.content.unixfs.cid import Cid
from roost.storage.content.unixfs.dagpb import UnixfsKind
from roost.storage.content.unixfs.importer import DagTree
from roost.storage.files.groups.model import GroupNotFound
from roost.storage.files.groups.service import get_group
from roost.storage.files.model import NAME_LIMIT, File, FileIdTaken, StorageQuotaExceeded
from roost.storage.files.service import FileService, NewFile
from roost.storage.files.uploads import mime_sniffing
from roost.storage.files.uploads.model import (
    DIRECTORY,
    FILES_LIMIT,
    InvalidUpload,
    MimeTypeRefused,
    SizeLimits,
    TooManyFiles,
    UploadedPart,
    UploadMetadata,
    UploadRequestLimits,
    UploadTooLarge,
    parse_upload_path,
)

_Folder = dict[str, "DagTree | _Folder"]


class UploadService:
    def __init__(self, db: Database, content: ContentService, files: FileService, limits: SizeLimits) -> None:
        self._db = db
        self._content = content
        self._files = files
        self._limits = limits
        self.quota = files.quota

    async def size_limit(self, tenant_id: str) -> int:
        """Return the maximum bytes of one upload of the tenant."""
        tenant = await self._db.read(lambda connection: tenants.get_tenant(connection, tenant_id))
        return self._limits[tenant.plan]

    @asynccontextmanager
    async def begin(self, limits: UploadRequestLimits) -> AsyncGenerator["UploadInProgress"]:
        """Open an upload; the context discards it unless it was finished. Raises BlobStoreFailed."""
        limit, remaining = await self._db.read(lambda connection: self._size_limits(connection, limits.tenant_id))
        if limits.max_size is not None:
            limit = min(limit, limits.max_size)
        async with self._content.receive(limits.profile) as receiver:
            yield UploadInProgress(self, limits, receiver, limit, remaining)

    async def publish(
        self,
        limits: UploadRequestLimits,
        receiver: ContentReceiver,
        parts: Sequence[UploadedPart],
        metadata: UploadMetadata,
    ) -> File:
        """Publish the parts in the receiver as a file or folder.

        Raises InvalidUpload, UploadTooLarge, MimeTypeRefused, GroupNotFound, StorageQuotaExceeded, MalformedContent,
        BlobStoreFailed.
        """
        if not parts:
            raise InvalidUpload("A file is required")
        if metadata.car:
            return await self._publish_car(limits, receiver, parts, metadata)
        if metadata.profile not in {None, limits.profile}:
            receiver, trees = await self._content.import_with_profile(receiver, metadata.profile or limits.profile)
            parts = [replace(part, tree=tree) for part, tree in zip(parts, trees, strict=True)]
        root, name = await run_in_daemon_thread(lambda: _build_root(receiver, parts, wrap=metadata.wrap))
        kind = mime_sniffing.mime_type(parts[0].head, name) if root is parts[0].tree else DIRECTORY
        new_file = _new_file(limits, metadata, name, root.cid, root.size, kind, len(parts))
        return await self._commit(receiver, limits, new_file)

    async def _publish_car(
        self,
        limits: UploadRequestLimits,
        receiver: ContentReceiver,
        parts: Sequence[UploadedPart],
        metadata: UploadMetadata,
    ) -> File:
        if len(parts) > 1:
            raise InvalidUpload("A CAR is one file")
        car = await self._content.import_car(receiver)
        kept = await car.finish()
        limit = await self.size_limit(limits.tenant_id)
        if kept.size > min(limit, limit if limits.max_size is None else limits.max_size):
            raise UploadTooLarge  # repeated blocks count once in the CAR
        kind = DIRECTORY if kept.kind in {UnixfsKind.DIRECTORY, UnixfsKind.SHARD} else mime_sniffing.UNKNOWN
        new_file = _new_file(limits, metadata, parts[0].path[-1], kept.cid, kept.size, kind, kept.files)
        return await self._commit(car, limits, new_file)

    async def _commit(self, receiver: PackReceiver, limits: UploadRequestLimits, new_file: NewFile) -> File:
        """Commit the pack; discard it at once if no file holds it, because the sweep may be an hour away."""
        pack_id = receiver.pack_id
        try:
            file = await receiver.commit(lambda connection: self._add(connection, limits, new_file, pack_id))
        except (GroupNotFound, FileIdTaken, StorageQuotaExceeded):
            await self._content.discard(pack_id)
            raise
        if not file.is_duplicate:
            return file
        await self._content.discard(pack_id)
        # The holder of a signed URL does not learn that the tenant has the content already.
        return file if limits.file_id is None else new_file.to_file(limits.file_id)

    def _size_limits(self, connection: Connection, tenant_id: str) -> tuple[int, int | None]:
        """Return the limit of one upload and the remaining quota, which is checked again on publishing."""
        tenant = tenants.get_tenant(connection, tenant_id)
        return self._limits[tenant.plan], self.quota.remaining_bytes(connection, tenant)

    def _add(self, connection: Connection, limits: UploadRequestLimits, new_file: NewFile, pack_id: str) -> File:
        tenants.lock_tenant(connection, limits.tenant_id)  # keeps the group until the transaction ends
        group_id = new_file.metadata.group_id
        if group_id:
            get_group(connection, limits.tenant_id, new_file.network, group_id)
        return self._files.add(connection, new_file, pack_id, limits.file_id)


class UploadInProgress:
    """An open upload: `write` the bytes of a file and `end_file`, for each file; then `finish` once."""

    def __init__(
        self,
        uploads: UploadService,
        limits: UploadRequestLimits,
        receiver: ContentReceiver,
        limit: int,
        remaining: int | None,
    ) -> None:
        self._uploads = uploads
        self._order = limits
        self._receiver = receiver
        self._head = bytearray()
        self._parts: list[UploadedPart] = []
        self._remaining = remaining
        self.limit = limit

    @property
    def size(self) -> int:
        """Bytes received."""
        return self._receiver.size

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        """Write the next bytes of the file. Raises UploadTooLarge, StorageQuotaExceeded, BlobStoreFailed."""
        size = self.size + len(data)
        if size > self.limit:
            raise UploadTooLarge
        if self._remaining is not None and size > self._remaining:
            raise StorageQuotaExceeded
        if not self._parts and len(self._head) < mime_sniffing.SNIFFED_BYTES:
            self._head += data[: mime_sniffing.SNIFFED_BYTES - len(self._head)]
        await self._receiver.write(data)

    async def end_file(self, filename: str) -> UploadedPart:
        """End the current file, named like `folder/a.txt`. Raises InvalidUpload, TooManyFiles."""
        if len(self._parts) == FILES_LIMIT:
            raise TooManyFiles
        path = parse_upload_path(filename)
        part = UploadedPart(path, await self._receiver.end_file(), b"" if self._parts else bytes(self._head))
        self._parts.append(part)
        return part

    async def finish(self, metadata: UploadMetadata) -> File:
        """Publish the upload. Raises the errors of `UploadService.publish`."""
        return await self._uploads.publish(self._order, self._receiver, self._parts, metadata)


def _new_file(
    limits: UploadRequestLimits, metadata: UploadMetadata, name: str, cid: Cid, size: int, kind: str, files: int
) -> NewFile:
    """Build the new file. Raises MimeTypeRefused."""
    if limits.mime_types and not mime_sniffing.matches_types(limits.mime_types, kind):
        raise MimeTypeRefused(f"{MimeTypeRefused.message}: {kind}")
    file_metadata = metadata.file_metadata
    if not file_metadata.name:
        file_metadata = replace(file_metadata, name=name[:NAME_LIMIT])
    return NewFile(limits.tenant_id, metadata.network, str(cid), size, kind, file_metadata, files)


def _build_root(receiver: ContentReceiver, parts: Sequence[UploadedPart], *, wrap: bool) -> tuple[DagTree, str]:
    """Return the root of an upload and its name: the single file, or the common folder."""
    top: _Folder = {}
    folders = sum(_insert_part(top, part) for part in parts)
    if folders > FILES_LIMIT:
        raise TooManyFiles
    (name, root), *others = top.items()
    if others:
        raise InvalidUpload("All files of an upload must be in one folder")
    if isinstance(root, DagTree):
        return (add_folder_tree(receiver, top) if wrap else root), name
    return add_folder_tree(receiver, root), name


def _insert_part(top: _Folder, part: UploadedPart) -> int:
    """Insert a part into the folder tree; return the number of new folders."""
    *folders, name = part.path
    at, new = top, 0
    for folder in folders:
        new += folder not in at
        below = at.setdefault(folder, {})
        if isinstance(below, DagTree):
            raise InvalidUpload("A name is there twice")
        at = below
    if name in at:
        raise InvalidUpload("A name is there twice")
    at[name] = part.tree
    return new
