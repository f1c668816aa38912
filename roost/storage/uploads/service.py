"""Uploads: `begin` one, `write` its files, `finish` it. What is not finished leaves nothing.

Whatever way bytes come here (a form, parts, a fetch), this is how they become a file: streamed into one pack, bounded
by the tenant's plan, looked at for their type, published in one transaction.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from sqlalchemy import Connection

from roost.core.db import Database
from roost.core.threads import aside
from roost.identity import tenants
from roost.identity.model import Tenant
from roost.storage.content.cars import CarReceiver
from roost.storage.content.receiver import Receiver
from roost.storage.content.service import Content
from roost.storage.files.errors import FileThere, StorageFull
from roost.storage.files.model import NAME_LIMIT, File
from roost.storage.files.service import Arrival, Files
from roost.storage.groups.errors import GroupMissing
from roost.storage.groups.service import Groups
from roost.storage.unixfs.cid import Cid
from roost.storage.unixfs.dagpb import Kind
from roost.storage.unixfs.folder import Entry
from roost.storage.unixfs.importer import Tree
from roost.storage.uploads import sniff
from roost.storage.uploads.errors import InvalidUpload, TooManyFiles, TypeRefused, UploadTooLarge
from roost.storage.uploads.model import DIRECTORY, FILES_LIMIT, Label, Order, Part, SizeLimits
from roost.storage.uploads.names import path_of

_Folder = dict[str, "Tree | _Folder"]


class Uploads:
    def __init__(self, db: Database, content: Content, files: Files, limits: SizeLimits) -> None:
        self._db = db
        self._content = content
        self._files = files
        self._limits = limits

    async def limit(self, tenant_id: str) -> int:
        """How many bytes one upload of the tenant's may have."""
        tenant = await self._db.read(lambda connection: tenants.get(connection, tenant_id))
        return self._limits[tenant.plan]

    async def usage(self, tenant_id: str) -> tuple[int, int | None]:
        """How many bytes the tenant keeps, and how many it may; None for any number."""
        return await self._files.capacity.usage(tenant_id)

    def expect(self, connection: Connection, tenant: Tenant, size: int) -> None:
        """Refuse what will not fit. Raises StorageFull."""
        self._files.capacity.check(connection, tenant, size)

    @asynccontextmanager
    async def begin(self, order: Order) -> AsyncGenerator["Upload"]:
        """An upload to write into; what is not finished at the end of the context is gone. Raises BlobFailed."""
        limit, room = await self._db.read(lambda connection: self._bounds(connection, order.tenant_id))
        if order.max_size is not None:
            limit = min(limit, order.max_size)
        async with self._content.receive(order.profile) as receiver:
            yield Upload(self, order, receiver, limit, room)

    async def publish(self, order: Order, receiver: Receiver, parts: Sequence[Part], label: Label) -> File:
        """The file, or folder, of parts that are all in the receiver.

        Raises InvalidUpload, UploadTooLarge, TypeRefused, GroupMissing, StorageFull, Malformed, BlobFailed.
        """
        if not parts:
            raise InvalidUpload("A file is required")
        if label.car:
            return await self._publish_car(order, receiver, parts, label)
        if label.profile not in {None, order.profile}:
            receiver, trees = await self._content.again.under(receiver, label.profile or order.profile)
            parts = [replace(part, tree=tree) for part, tree in zip(parts, trees, strict=True)]
        root, name = await aside(lambda: _arranged(receiver, parts, wrap=label.wrap))
        kind = sniff.mime_type(parts[0].head, name) if root is parts[0].tree else DIRECTORY
        arrival = _arrival(order, label, name, root.cid, root.size, kind, len(parts))
        return await self._committed(receiver, order, arrival)

    async def _publish_car(self, order: Order, receiver: Receiver, parts: Sequence[Part], label: Label) -> File:
        if len(parts) > 1:
            raise InvalidUpload("A CAR is one file")
        car = await self._content.again.as_car(receiver)
        kept = await car.end()
        limit = await self.limit(order.tenant_id)
        if kept.size > min(limit, limit if order.max_size is None else order.max_size):
            raise UploadTooLarge  # few blocks, each of which is in it very often
        kind = DIRECTORY if kept.kind in {Kind.DIRECTORY, Kind.SHARD} else sniff.UNKNOWN
        arrival = _arrival(order, label, parts[0].path[-1], kept.cid, kept.size, kind, kept.files)
        return await self._committed(car, order, arrival)

    async def _committed(self, receiver: Receiver | CarReceiver, order: Order, arrival: Arrival) -> File:
        """What turns out to be nobody's goes at once: until a sweep, much of it could come."""
        pack_id = receiver.pack_id
        try:
            file = await receiver.commit(lambda connection: self._add(connection, order, arrival, pack_id))
        except (GroupMissing, FileThere, StorageFull):
            await self._content.discard(pack_id)
            raise
        if not file.is_duplicate:
            return file
        await self._content.discard(pack_id)
        return file if order.file_id is None else arrival.file(order.file_id)  # not told: it may be a stranger's upload

    def _bounds(self, connection: Connection, tenant_id: str) -> tuple[int, int | None]:
        """Of one upload, and of all together: what room there is when it is published is what counts."""
        tenant = tenants.get(connection, tenant_id)
        return self._limits[tenant.plan], self._files.capacity.room(connection, tenant)

    def _add(self, connection: Connection, order: Order, arrival: Arrival, pack_id: str) -> File:
        tenants.hold(connection, order.tenant_id)  # the group stays until the file is in it
        group_id = arrival.note.group_id
        if group_id and not Groups.find(connection, order.tenant_id, arrival.network, group_id):
            raise GroupMissing
        return self._files.add(connection, arrival, pack_id, order.file_id)


class Upload:
    """Got from `Uploads.begin`. `write` the bytes of a file, `end_file`, and so on; then `finish` once."""

    def __init__(self, uploads: Uploads, order: Order, receiver: Receiver, limit: int, room: int | None) -> None:
        self._uploads = uploads
        self._order = order
        self._receiver = receiver
        self._head = bytearray()
        self._parts: list[Part] = []
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
            raise StorageFull
        if not self._parts and len(self._head) < sniff.HEAD:
            self._head += data[: sniff.HEAD - len(self._head)]
        await self._receiver.write(data)

    async def end_file(self, filename: str) -> Part:
        """The file that ends here, `folder/a.txt` for one in a folder. Raises InvalidUpload, TooManyFiles."""
        if len(self._parts) == FILES_LIMIT:
            raise TooManyFiles
        path = path_of(filename)
        part = Part(path, await self._receiver.end_file(), b"" if self._parts else bytes(self._head))
        self._parts.append(part)
        return part

    async def finish(self, label: Label) -> File:
        """Raises InvalidUpload, TypeRefused, GroupMissing, StorageFull, BlobFailed."""
        return await self._uploads.publish(self._order, self._receiver, self._parts, label)


def _arrival(order: Order, label: Label, name: str, cid: Cid, size: int, kind: str, files: int) -> Arrival:
    """Raises TypeRefused."""
    if order.mime_types and not sniff.allows(order.mime_types, kind):
        raise TypeRefused(f"{TypeRefused.message}: {kind}")
    note = label.note if label.note.name else replace(label.note, name=name[:NAME_LIMIT])
    return Arrival(order.tenant_id, label.network, str(cid), size, kind, note, files)


def _arranged(receiver: Receiver, parts: Sequence[Part], *, wrap: bool) -> tuple[Tree, str]:
    """The root of an upload and its name: the one file, or the one folder that all files are in."""
    top: _Folder = {}
    folders = sum(_place(top, part) for part in parts)
    if folders > FILES_LIMIT:
        raise TooManyFiles
    (name, root), *others = top.items()
    if others:
        raise InvalidUpload("All files of an upload have to be in one folder")
    if isinstance(root, Tree):
        return (_folded(receiver, top) if wrap else root), name
    return _folded(receiver, root), name


def _place(top: _Folder, part: Part) -> int:
    """How many folders are new with it."""
    *folders, name = part.path
    at, new = top, 0
    for folder in folders:
        new += folder not in at
        below = at.setdefault(folder, {})
        if isinstance(below, Tree):
            raise InvalidUpload("A name is there twice")
        at = below
    if name in at:
        raise InvalidUpload("A name is there twice")
    at[name] = part.tree
    return new


def _folded(receiver: Receiver, inside: Mapping[str, "Tree | _Folder"]) -> Tree:
    """A folder with all that is below it. Raises InvalidName, Malformed."""
    entries: list[Entry] = []
    for name, below in inside.items():
        tree = below if isinstance(below, Tree) else _folded(receiver, below)
        entries.append(Entry(name, tree.cid, tree.size, tree.tsize))
    return receiver.add_folder(entries)
