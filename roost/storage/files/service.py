"""Files: add, find, list, note, delete. A file holds its pack as long as it is there."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from roost.core import clock, ids, page_cursor
from roost.core.db import Database
from roost.core.page_cursor import PageCursor
from roost.identity import tenants
from roost.storage.content import service as content
from roost.storage.content.model import ContentNetwork, PackReference
from roost.storage.files import store
from roost.storage.files.errors import FileIdTaken, FileNotFound
from roost.storage.files.model import PAGE_LIMIT, File, FileEvent, FileFilter, FileMetadata, PinFilter, holder_of
from roost.storage.files.quota import UNLIMITED, Capacities, StorageQuota
from roost.storage.unixfs.cid import Cid

_EXPIRED_AT_ONCE = 200
_NAMES_AT_ONCE = 500

Watch = Callable[[Connection, FileEvent, File, File | None], None]
"""Told of a change inside its transaction: the file as it is now, and what it was before an update."""


@dataclass(frozen=True)
class NewFile:
    """What came, before it is a file."""

    tenant_id: str
    network: ContentNetwork
    cid: str
    size: int
    mime_type: str
    note: FileMetadata
    number_of_files: int = 1

    def file(self, file_id: str) -> File:
        """What it is when it is the first one of its content."""
        now = clock.utc_now()
        return File(
            id=file_id,
            tenant_id=self.tenant_id,
            network=self.network,
            cid=self.cid,
            size=self.size,
            number_of_files=self.number_of_files,
            mime_type=self.mime_type,
            note=self.note,
            created_at=now,
            updated_at=now,
        )


class FileService:
    def __init__(self, db: Database, capacities: Capacities = UNLIMITED) -> None:
        self._db = db
        self.capacity = StorageQuota(db, capacities)
        self._watches: list[Watch] = []

    def watch(self, watch: Watch) -> None:
        """Tell `watch` of every change from now on. What it raises undoes the change."""
        self._watches.append(watch)

    def add(self, connection: Connection, arrival: NewFile, pack_id: str, file_id: str | None = None) -> File:
        """The file of that arrival, holding its pack, inside the transaction that publishes the pack.

        A CID that the tenant has on that network already is that file, told as a duplicate; the new pack is then
        nobody's, and goes, unless what there was is damaged: then the file has the new one from now on. It stands for
        `file_id` too, which was promised: an id leads to one file for ever. Raises FileThere, StorageFull.
        """
        tenant = tenants.lock_tenant(
            connection, arrival.tenant_id
        )  # the same content may come twice at once; its group stays
        present = store.by_cid(connection, arrival.tenant_id, arrival.network, arrival.cid)
        if file_id is not None and (standing := store.stands_for(connection, file_id)) is not None:
            if present is None or present.id != standing:
                raise FileIdTaken
        elif file_id is not None and present is not None:
            store.keep_promise(connection, file_id, present.id)
        if present is not None:
            if content.replace_damaged(
                connection, PackReference(pack_id, holder_of(present.id), present.tenant_id, present.network)
            ):
                self.capacity.check(connection, tenant)
            return replace(present, is_duplicate=True)
        file = arrival.file(file_id or ids.new_id())
        store.add(connection, file)
        content.hold_pack(connection, PackReference(pack_id, holder_of(file.id), file.tenant_id, file.network))
        self.capacity.check(connection, tenant)
        self._tell(connection, FileEvent.ADDED, file)
        return file

    async def get(self, tenant_id: str, network: ContentNetwork, file_id: str) -> File:
        """Raises FileMissing."""
        return await self._db.read(lambda connection: found(connection, tenant_id, network, file_id))

    async def list(
        self, tenant_id: str, network: ContentNetwork, chosen: FileFilter, token: str | None, limit: int
    ) -> tuple[Sequence[File], str | None]:
        """A page, and the token of the next if there may be one. Raises InvalidPage."""
        after = PageCursor.parse(token) if token else None
        limit = min(max(limit, 1), PAGE_LIMIT)
        read = self._db.read_long if chosen.is_search else self._db.read
        rows = await read(lambda connection: store.page(connection, tenant_id, network, chosen, after, limit + 1))
        return page_cursor.split_page(rows, limit)

    async def pins(self, tenant_id: str, chosen: PinFilter, limit: int, offset: int) -> tuple[Sequence[File], int]:
        """Public files, deleted ones too, newest first, and how many the filter lets through."""
        return await self._db.read_long(lambda connection: store.pins(connection, tenant_id, chosen, limit, offset))

    async def total(self, tenant_id: str, network: ContentNetwork) -> tuple[int, int]:
        """How many files there are, and their bytes."""
        return await self._db.read_long(lambda connection: store.count(connection, tenant_id, network, FileFilter()))

    async def note(self, tenant_id: str, network: ContentNetwork, file_id: str, note: FileMetadata) -> File:
        """The file with another note. Raises FileMissing."""
        return await self.change(tenant_id, network, file_id, lambda _: note)

    async def change(
        self, tenant_id: str, network: ContentNetwork, file_id: str, to: Callable[[FileMetadata], FileMetadata]
    ) -> File:
        """The file with the note that `to` makes of the one it has. Raises FileMissing, and what `to` raises."""

        def change(connection: Connection) -> File:
            tenants.lock_tenant(
                connection, tenant_id
            )  # nobody else changes it, its group or whether it is there meanwhile
            file = found(connection, tenant_id, network, file_id)
            note, now = to(file.note), clock.utc_now()
            store.set_note(connection, file.id, note, now)
            changed = replace(file, note=note, updated_at=now)
            self._tell(connection, FileEvent.UPDATED, changed, file)
            return changed

        return await self._db.write(change)

    def set_group(self, connection: Connection, file: File, group_id: str | None) -> None:
        """Move a file into a group of its tenant and network, or out of its group, in the caller's transaction."""
        now = clock.utc_now()
        store.set_group(connection, file.id, group_id, now)
        changed = replace(file, note=replace(file.note, group_id=group_id), updated_at=now)
        self._tell(connection, FileEvent.UPDATED, changed, file)

    async def delete(self, tenant_id: str, network: ContentNetwork, file_id: str) -> File:
        """What nobody else holds goes with the next sweep. Raises FileMissing."""

        def delete(connection: Connection) -> File:
            tenants.lock_tenant(connection, tenant_id)
            file = found(connection, tenant_id, network, file_id)
            self.remove(connection, file)
            return file

        return await self._db.write(delete)

    def remove(self, connection: Connection, file: File) -> None:
        """The same inside a transaction of the caller's, where the tenant is held. Raises FileMissing."""
        if not self._forget(connection, file):
            raise FileNotFound

    async def expire(self) -> int:
        """Delete the files whose time is over; how many there were."""

        def remove(connection: Connection) -> int:
            now = clock.utc_now()
            concerned = sorted({file.tenant_id for file in store.expired(connection, now, _EXPIRED_AT_ONCE)})
            for tenant_id in concerned:  # in one order: two servers never wait in a ring
                tenants.lock_tenant(connection, tenant_id)
            over = store.expired(connection, now, _EXPIRED_AT_ONCE)  # somebody may have given one more time
            return sum(self._forget(connection, file) for file in over if file.tenant_id in concerned)

        return await self._db.write(remove)

    def _forget(self, connection: Connection, file: File) -> bool:
        """False where somebody else was first."""
        if not store.mark_deleted(connection, file.id, clock.utc_now()):
            return False
        content.release_packs(connection, holder_of(file.id))
        self._tell(connection, FileEvent.DELETED, file)
        return True

    def _tell(self, connection: Connection, change: FileEvent, file: File, before: File | None = None) -> None:
        for watch in self._watches:
            watch(connection, change, file, before)


def names(connection: Connection, tenant_id: str, network: ContentNetwork, cids: Sequence[Cid]) -> Mapping[Cid, str]:
    """How the tenant calls its files of these CIDs, under this spelling or another, by their version 1."""
    spelled = {str(spelling): cid.v1() for cid in cids for spelling in cid.spellings()}
    every = list(spelled)
    known: dict[Cid, str] = {}
    for at in range(0, len(every), _NAMES_AT_ONCE):
        some = store.names(connection, tenant_id, network, every[at : at + _NAMES_AT_ONCE])
        known |= {spelled[cid]: name for cid, name in some.items()}
    return known


def named(connection: Connection, tenant_id: str, network: ContentNetwork, cid: Cid) -> File | None:
    """The tenant's file of that CID, under this spelling or another, inside a transaction of the caller's."""
    spellings = (cid, *cid.spellings())
    files = (store.by_cid(connection, tenant_id, network, str(one)) for one in spellings)
    return next((file for file in files if file is not None), None)


def found(connection: Connection, tenant_id: str, network: ContentNetwork, which: str | Cid) -> File:
    """The tenant's file of that id, or of that CID under any spelling, in a transaction of the caller's.

    Raises FileMissing.
    """
    if isinstance(which, str):
        file = store.get(connection, tenant_id, network, which)
    else:
        file = named(connection, tenant_id, network, which)
    if file is None:
        raise FileNotFound
    return file
