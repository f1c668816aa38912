"""Uploads: `begin` one, `write` its files, `finish` it. What is not finished leaves nothing.

Whatever way bytes come here (a form, parts, a fetch), this is how they become a file: streamed into one pack, bounded
by the tenant's plan, looked at for their type, published in one transaction.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from sqlalchemy import Connection

from roost.core.daemon_thread import run_in_daemon_thread
from roost.core.db import Database
from roost.identity import tenants
from roost.identity.model import Tenant
from roost.storage.content.car_receiver import CarReceiver
from roost.storage.content.receiver import ContentReceiver
from roost.storage.content.service import ContentService
from roost.storage.files.errors import FileIdTaken, StorageQuotaExceeded
from roost.storage.files.model import NAME_LIMIT, File
from roost.storage.files.service import FileService, NewFile
from roost.storage.groups.errors import GroupNotFound
from roost.storage.groups.service import GroupService
from roost.storage.unixfs.cid import Cid
from roost.storage.unixfs.dagpb import UnixfsKind
from roost.storage.unixfs.directory import DirectoryEntry
from roost.storage.unixfs.importer import DagTree
from roost.storage.uploads import mime_sniffing
from roost.storage.uploads.errors import InvalidUpload, MimeTypeRefused, TooManyFiles, UploadTooLarge
from roost.storage.uploads.model import (
    DIRECTORY,
    FILES_LIMIT,
    SizeLimits,
    UploadedPart,
    UploadMetadata,
    UploadRequestLimits,
)
from roost.storage.uploads.upload_paths import path_of

_Folder = dict[str, "DagTree | _Folder"]


class UploadService:
    def __init__(self, db: Database, content: ContentService, files: FileService, limits: SizeLimits) -> None:
        self._db = db
        self._content = content
        self._files = files
        self._limits = limits

    async def limit(self, tenant_id: str) -> int:
        """How many bytes one upload of the tenant's may have."""
        tenant = await self._db.read(lambda connection: tenants.get_tenant(connection, tenant_id))
        return self._limits[tenant.plan]

    async def usage(self, tenant_id: str) -> tuple[int, int | None]:
        """How many bytes the tenant keeps, and how many it may; None for any number."""
        return await self._files.capacity.usage(tenant_id)

    def expect(self, connection: Connection, tenant: Tenant, size: int) -> None:
        """Refuse what will not fit. Raises StorageFull."""
        self._files.capacity.check(connection, tenant, size)

    @asynccontextmanager
    async def begin(self, order: UploadRequestLimits) -> AsyncGenerator["UploadInProgress"]:
        """An upload to write into; what is not finished at the end of the context is gone. Raises BlobFailed."""
        limit, room = await self._db.read(lambda connection: self._bounds(connection, order.tenant_id))
        if order.max_size is not None:
            limit = min(limit, order.max_size)
        async with self._content.receive(order.profile) as receiver:
            yield UploadInProgress(self, order, receiver, limit, room)

    async def publish(
        self,
        order: UploadRequestLimits,
        receiver: ContentReceiver,
        parts: Sequence[UploadedPart],
        label: UploadMetadata,
    ) -> File:
        """The file, or folder, of parts that are all in the receiver.

        Raises InvalidUpload, UploadTooLarge, TypeRefused, GroupMissing, StorageFull, Malformed, BlobFailed.
        """
        if not parts:
            raise InvalidUpload("A file is required")
        if label.car:
            return await self._publish_car(order, receiver, parts, label)
        if label.profile not in {None, order.profile}:
            receiver, trees = await self._content.reimporter.import_with_profile(
                receiver, label.profile or order.profile
            )
            parts = [replace(part, tree=tree) for part, tree in zip(parts, trees, strict=True)]
        root, name = await run_in_daemon_thread(lambda: _arranged(receiver, parts, wrap=label.wrap))
        kind = mime_sniffing.mime_type(parts[0].head, name) if root is parts[0].tree else DIRECTORY
        arrival = _arrival(order, label, name, root.cid, root.size, kind, len(parts))
        return await self._committed(receiver, order, arrival)

    async def _publish_car(
        self,
        order: UploadRequestLimits,
        receiver: ContentReceiver,
        parts: Sequence[UploadedPart],
        label: UploadMetadata,
    ) -> File:
        if len(parts) > 1:
            raise InvalidUpload("A CAR is one file")
        car = await self._content.reimporter.import_car(receiver)
        kept = await car.finish()
        limit = await self.limit(order.tenant_id)
        if kept.size > min(limit, limit if order.max_size is None else order.max_size):
            raise UploadTooLarge  # few blocks, each of which is in it very often
        kind = DIRECTORY if kept.kind in {UnixfsKind.DIRECTORY, UnixfsKind.SHARD} else mime_sniffing.UNKNOWN
        arrival = _arrival(order, label, parts[0].path[-1], kept.cid, kept.size, kind, kept.files)
        return await self._committed(car, order, arrival)

    async def _committed(
        self, receiver: ContentReceiver | CarReceiver, order: UploadRequestLimits, arrival: NewFile
    ) -> File:
        """What turns out to be nobody's goes at once: until a sweep, much of it could come."""
        pack_id = receiver.pack_id
        try:
            file = await receiver.commit(lambda connection: self._add(connection, order, arrival, pack_id))
        except (GroupNotFound, FileIdTaken, StorageQuotaExceeded):
            await self._content.discard(pack_id)
            raise
        if not file.is_duplicate:
            return file
        await self._content.discard(pack_id)
        return file if order.file_id is None else arrival.file(order.file_id)  # not told: it may be a stranger's upload

    def _bounds(self, connection: Connection, tenant_id: str) -> tuple[int, int | None]:
        """Of one upload, and of all together: what room there is when it is published is what counts."""
        tenant = tenants.get_tenant(connection, tenant_id)
        return self._limits[tenant.plan], self._files.capacity.room(connection, tenant)

    def _add(self, connection: Connection, order: UploadRequestLimits, arrival: NewFile, pack_id: str) -> File:
        tenants.lock_tenant(connection, order.tenant_id)  # the group stays until the file is in it
        group_id = arrival.note.group_id
        if group_id and not GroupService.find(connection, order.tenant_id, arrival.network, group_id):
            raise GroupNotFound
        return self._files.add(connection, arrival, pack_id, order.file_id)


class UploadInProgress:
    """Got from `Uploads.begin`. `write` the bytes of a file, `end_file`, and so on; then `finish` once."""

    def __init__(
        self,
        uploads: UploadService,
        order: UploadRequestLimits,
        receiver: ContentReceiver,
        limit: int,
        room: int | None,
    ) -> None:
        self._uploads = uploads
        self._order = order
        self._receiver = receiver
        self._head = bytearray()
        self._parts: list[UploadedPart] = []
        self._room = room
        self.limit = limit

    @property
    def size(self) -> int:
        """Bytes received."""
        return self._receiver.size

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        """The next bytes of the present file. Raises UploadTooLarge, StorageFull, BlobFailed."""
        size = self.size + len(data)
        if size > self.limit:
            raise UploadTooLarge
        if self._room is not None and size > self._room:
            raise StorageQuotaExceeded
        if not self._parts and len(self._head) < mime_sniffing.HEAD:
            self._head += data[: mime_sniffing.HEAD - len(self._head)]
        await self._receiver.write(data)

    async def end_file(self, filename: str) -> UploadedPart:
        """The file that ends here, `folder/a.txt` for one in a folder. Raises InvalidUpload, TooManyFiles."""
        if len(self._parts) == FILES_LIMIT:
            raise TooManyFiles
        path = path_of(filename)
        part = UploadedPart(path, await self._receiver.end_file(), b"" if self._parts else bytes(self._head))
        self._parts.append(part)
        return part

    async def finish(self, label: UploadMetadata) -> File:
        """Raises InvalidUpload, TypeRefused, GroupMissing, StorageFull, BlobFailed."""
        return await self._uploads.publish(self._order, self._receiver, self._parts, label)


def _arrival(
    order: UploadRequestLimits, label: UploadMetadata, name: str, cid: Cid, size: int, kind: str, files: int
) -> NewFile:
    """Raises TypeRefused."""
    if order.mime_types and not mime_sniffing.allows(order.mime_types, kind):
        raise MimeTypeRefused(f"{MimeTypeRefused.message}: {kind}")
    note = label.note if label.note.name else replace(label.note, name=name[:NAME_LIMIT])
    return NewFile(order.tenant_id, label.network, str(cid), size, kind, note, files)


def _arranged(receiver: ContentReceiver, parts: Sequence[UploadedPart], *, wrap: bool) -> tuple[DagTree, str]:
    """The root of an upload and its name: the one file, or the one folder that all files are in."""
    top: _Folder = {}
    folders = sum(_place(top, part) for part in parts)
    if folders > FILES_LIMIT:
        raise TooManyFiles
    (name, root), *others = top.items()
    if others:
        raise InvalidUpload("All files of an upload have to be in one folder")
    if isinstance(root, DagTree):
        return (_folded(receiver, top) if wrap else root), name
    return _folded(receiver, root), name


def _place(top: _Folder, part: UploadedPart) -> int:
    """How many folders are new with it."""
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


def _folded(receiver: ContentReceiver, inside: Mapping[str, "DagTree | _Folder"]) -> DagTree:
    """A folder with all that is below it. Raises InvalidName, Malformed."""
    entries: list[DirectoryEntry] = []
    for name, below in inside.items():
        tree = below if isinstance(below, DagTree) else _folded(receiver, below)
        entries.append(DirectoryEntry(name, tree.cid, tree.size, tree.tsize))
    return receiver.add_folder(entries)
