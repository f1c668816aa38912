"""Add, find, list, update and delete files. A file holds its pack until it is deleted."""

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from roost.core import clock, ids, page_cursor
from roost.core.db import Connection, Database, DataChange, record_change
from roost.core.page_cursor import PageCursor
from roost.identity import tenants
from roost.identity.caller import Plan
from roost.identity.model import Tenant
from roost.storage.content import service as content
from roost.storage.content.model import ContentNetwork, PackReference
from roost.storage.content.unixfs.cid import Cid
from roost.storage.files import store
from roost.storage.files.model import (
    PAGE_LIMIT,
    File,
    FileEvent,
    FileFilter,
    FileIdTaken,
    FileMetadata,
    FileNotFound,
    PinFilter,
    StorageQuotaExceeded,
    holder_of,
)

_EXPIRE_BATCH = 200
_NAME_BATCH = 500
_DAMAGE_BATCH = 500
_SHORT_PAGE = 50
"""Files of a page that the event loop reads itself, in about a millisecond."""

Capacities = Mapping[Plan, int | None]
"""Bytes that a tenant may store; None is unlimited."""
UNLIMITED: Capacities = dict.fromkeys(Plan)

FileListener = Callable[[Connection, FileEvent, File, File | None], None]
"""Called in the transaction of a change with the file, and for an update with the previous file."""


@dataclass(frozen=True)
class NewFile:
    """Received content before it becomes a file."""

    tenant_id: str
    network: ContentNetwork
    cid: str
    size: int
    mime_type: str
    metadata: FileMetadata
    number_of_files: int = 1

    def to_file(self, file_id: str) -> File:
        """Build the file for content that the tenant does not have yet."""
        now = clock.utc_now()
        return File(id=file_id, **vars(self), created_at=now, updated_at=now)


class StorageQuota:
    """Quota of a tenant by its plan: bytes of stored content on both networks."""

    def __init__(self, db: Database, capacities: Capacities) -> None:
        self._db = db
        self._capacities = capacities

    async def usage(self, tenant_id: str) -> tuple[int, int | None]:
        """Return the stored bytes of the tenant and its limit; None is unlimited."""

        def read(connection: Connection) -> tuple[int, int | None]:
            plan = tenants.get_tenant(connection, tenant_id).plan
            return content.stored_bytes(connection, tenant_id), self._capacities[plan]

        return await self._db.read(read)

    def remaining_bytes(self, connection: Connection, tenant: Tenant) -> int | None:
        """Return the remaining bytes, negative over the quota; None is unlimited."""
        most = self._capacities[tenant.plan]
        return None if most is None else most - content.stored_bytes(connection, tenant.id)

    def check(self, connection: Connection, tenant: Tenant, more: int = 0) -> None:
        """Check that the quota allows `more` bytes; exact while the tenant is locked. Raises StorageQuotaExceeded."""
        remaining = self.remaining_bytes(connection, tenant)
        if remaining is not None and more > remaining:
            raise StorageQuotaExceeded


class FileService:
    def __init__(self, db: Database, capacities: Capacities = UNLIMITED) -> None:
        self._db = db
        self.quota = StorageQuota(db, capacities)
        self._listeners: list[FileListener] = []

    def add_listener(self, listener: FileListener) -> None:
        """Call `listener` on every change; its exceptions undo the change."""
        self._listeners.append(listener)

    def add(self, connection: Connection, new_file: NewFile, pack_id: str, file_id: str | None = None) -> File:
        """Add a file that holds its pack, in the transaction that publishes the pack.

        If the tenant has the CID on that network, return the existing file as a duplicate. The new pack then replaces
        its pack only if that is damaged, and `file_id` becomes an alias of the existing file.
        Raises FileIdTaken, StorageQuotaExceeded.
        """
        # The lock serializes uploads of the same content, and keeps the group.
        tenant = tenants.lock_tenant(connection, new_file.tenant_id)
        present = store.find_by_cid(connection, new_file.tenant_id, new_file.network, new_file.cid)
        if file_id is not None and (standing := store.resolve_file_id(connection, file_id)) is not None:
            if present is None or present.id != standing:
                raise FileIdTaken
        elif file_id is not None and present is not None:
            store.insert_alias(connection, file_id, present.id)
        if present is not None:
            reference = PackReference(pack_id, holder_of(present.id), present.tenant_id, present.network)
            if content.replace_damaged(connection, reference):
                self.quota.check(connection, tenant)
            return replace(present, is_duplicate=True)
        file = new_file.to_file(file_id or ids.new_id())
        store.insert_file(connection, file)
        content.hold_pack(connection, PackReference(pack_id, holder_of(file.id), file.tenant_id, file.network))
        self.quota.check(connection, tenant)
        self._notify(connection, FileEvent.ADDED, file)
        return file

    async def get(self, tenant_id: str, network: ContentNetwork, file_id: str) -> File:
        """Raise FileNotFound if the tenant has no such file."""
        return await self._db.read(lambda connection: get_file(connection, tenant_id, network, file_id))

    async def list(
        self, tenant_id: str, network: ContentNetwork, filters: FileFilter, token: str | None, limit: int
    ) -> tuple[Sequence[File], str | None]:
        """Return a page of files and the token of the next page. Raises InvalidPageToken."""
        after = PageCursor.parse(token) if token else None
        limit = min(max(limit, 1), PAGE_LIMIT)

        def read(connection: Connection) -> Sequence[File]:
            return store.list_files(connection, tenant_id, network, filters, after, limit + 1)

        is_long = filters.is_search or limit > _SHORT_PAGE
        rows = await (self._db.read_long(read, tenant_id) if is_long else self._db.read(read))
        return page_cursor.split_page(rows, limit)

    async def list_pins(
        self, tenant_id: str, filters: PinFilter, limit: int, offset: int
    ) -> tuple[Sequence[File], int]:
        """List public files, including deleted ones, newest first, and the total number of matches."""
        return await self._db.read_long(
            lambda connection: store.list_pins(connection, tenant_id, filters, limit, offset), tenant_id
        )

    async def count_files(self, tenant_id: str, network: ContentNetwork) -> tuple[int, int]:
        """Return the number of files and their bytes."""
        return await self._db.read_long(
            lambda connection: store.count_files(connection, tenant_id, network, FileFilter()), tenant_id
        )

    async def change(
        self, tenant_id: str, network: ContentNetwork, file_id: str, to: Callable[[FileMetadata], FileMetadata]
    ) -> File:
        """Update the metadata of a file with `to`. Raises FileNotFound and the errors of `to`."""

        def change(connection: Connection) -> File:
            tenants.lock_tenant(connection, tenant_id)  # serializes changes of the file and its group
            file = get_file(connection, tenant_id, network, file_id)
            metadata, now = to(file.metadata), clock.utc_now()
            store.set_metadata(connection, file.id, metadata, now)
            changed = replace(file, metadata=metadata, updated_at=now)
            self._notify(connection, FileEvent.UPDATED, changed, file)
            return changed

        return await self._db.write(change)

    def set_group(self, connection: Connection, file: File, group_id: str | None) -> None:
        """Move a file into a group of its tenant and network, or out of its group, in the caller's transaction."""
        now = clock.utc_now()
        store.set_group(connection, file.id, group_id, now)
        changed = replace(file, metadata=replace(file.metadata, group_id=group_id), updated_at=now)
        self._notify(connection, FileEvent.UPDATED, changed, file)

    async def delete(self, tenant_id: str, network: ContentNetwork, file_id: str) -> File:
        """Delete a file; the sweep removes content without a holder. Raises FileNotFound."""

        def delete(connection: Connection) -> File:
            tenants.lock_tenant(connection, tenant_id)
            file = get_file(connection, tenant_id, network, file_id)
            self.remove(connection, file)
            return file

        return await self._db.write(delete)

    def remove(self, connection: Connection, file: File) -> None:
        """Delete a file in the transaction of the caller, who holds the tenant's lock. Raises FileNotFound."""
        if not self._mark_deleted(connection, file):
            raise FileNotFound

    async def expire(self) -> int:
        """Delete some expired files; return their number."""

        def remove(connection: Connection) -> int:
            now = clock.utc_now()
            concerned = sorted({file.tenant_id for file in store.list_expired(connection, now, _EXPIRE_BATCH)})
            for tenant_id in concerned:  # sorted, so that two servers cannot deadlock
                tenants.lock_tenant(connection, tenant_id)
            over = store.list_expired(connection, now, _EXPIRE_BATCH)  # expiry times may have changed before the lock
            return sum(self._mark_deleted(connection, file) for file in over if file.tenant_id in concerned)

        return await self._db.write(remove)

    def _mark_deleted(self, connection: Connection, file: File) -> bool:
        """Mark a file as deleted; return False if it already was."""
        if not store.mark_deleted(connection, file.id, clock.utc_now()):
            return False
        content.release_packs(connection, holder_of(file.id))
        self._notify(connection, FileEvent.DELETED, file)
        return True

    def _notify(self, connection: Connection, change: FileEvent, file: File, before: File | None = None) -> None:
        data = {
            "name": file.metadata.name,
            "cid": file.cid,
            "size": file.size,
            "network": file.network.value,
            "group_id": file.metadata.group_id,
        }
        record_change(connection, DataChange("file", change.removeprefix("file_"), file.id, file.tenant_id, data=data))
        for listener in self._listeners:
            listener(connection, change, file, before)


def file_names(
    connection: Connection, tenant_id: str, network: ContentNetwork, cids: Iterable[str]
) -> Mapping[str, str]:
    """Return the names of the tenant's files of these CIDs; a file may have another spelling of its CID."""
    spellings = {cid: Cid.parse_spellings(cid) for cid in cids}
    every = list({spelling for spelled in spellings.values() for spelling in spelled})
    known: dict[str, str] = {}
    for at in range(0, len(every), _NAME_BATCH):
        known |= store.file_names(connection, tenant_id, network, every[at : at + _NAME_BATCH])
    return {cid: known[spelling] for cid, spelled in spellings.items() for spelling in spelled if spelling in known}


def find_by_cid(connection: Connection, tenant_id: str, network: ContentNetwork, cid: Cid) -> File | None:
    """Find the tenant's file of that CID, in any spelling."""
    spellings = (cid, *cid.spellings())
    files = (store.find_by_cid(connection, tenant_id, network, str(one)) for one in spellings)
    return next((file for file in files if file is not None), None)


def get_file(connection: Connection, tenant_id: str, network: ContentNetwork, which: str | Cid) -> File:
    """Return the tenant's file of that id or CID, in any spelling. Raises FileNotFound."""
    if isinstance(which, str):
        file = store.find_file(connection, tenant_id, network, which)
    else:
        file = find_by_cid(connection, tenant_id, network, which)
    if file is None:
        raise FileNotFound
    return file


def find_file(connection: Connection, tenant_id: str, file_id: str) -> File | None:
    """Return the tenant's file of that id, on either network."""
    files = (store.find_file(connection, tenant_id, network, file_id) for network in ContentNetwork)
    return next((file for file in files if file is not None), None)


def find_file_cid(connection: Connection, tenant_id: str, file_id: str) -> str | None:
    """Return the CID of the tenant's file of that id, on either network."""
    file = find_file(connection, tenant_id, file_id)
    return None if file is None else file.cid


def is_public(connection: Connection, cid: Cid) -> bool:
    """Return whether any tenant has a public file of that CID, in any spelling."""
    return store.has_public(connection, [str(one) for one in cid.spellings()])


async def damaged_content(db: Database) -> AsyncGenerator[File | str]:
    """Yield what holds content that is known to be damaged: files of all tenants, and names of other holders."""
    after = ""
    while holders := await db.read(
        lambda connection, after=after: content.holders_of_damaged(connection, after, _DAMAGE_BATCH)
    ):
        after = holders[-1]
        found = await db.read(lambda connection, holders=holders: store.files_of_holders(connection, holders))
        files = {holder_of(file.id): file for file in found}
        for holder in dict.fromkeys(holders):
            yield files.get(holder, holder)


def is_damaged(connection: Connection, file: File) -> bool:
    """Return whether the content of a file is known to be damaged."""
    return content.is_damaged(connection, holder_of(file.id))


def describe_holders(connection: Connection, holders: Sequence[str]) -> Sequence[str]:
    """Describe holders of content for an operator."""
    files = {holder_of(file.id): file for file in store.files_of_holders(connection, holders)}
    return [_describe_file(files[holder]) if holder in files else holder for holder in holders]


# Other slices call these in their transactions; the store is private to this package.
files_by_id, select_group_files, list_public_cids = store.files_by_id, store.select_group_files, store.list_public_cids


def _describe_file(file: File) -> str:
    return f"file {file.id} {file.metadata.name!r} {file.cid} ({file.network}) of tenant {file.tenant_id}"
