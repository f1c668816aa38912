"""Groups: named containers of files. The row of a file has the id of its group."""

from collections.abc import Sequence
from dataclasses import replace

from roost.core import clock, ids, page_cursor
from roost.core.db import Connection, Database
from roost.core.page_cursor import PageCursor
from roost.identity import tenants
from roost.storage.content.model import ContentNetwork
from roost.storage.content.unixfs.cid import Cid
from roost.storage.files.groups import store
from roost.storage.files.groups.model import PAGE_LIMIT, Group, GroupFilter, GroupNotFound, normalize_group_name
from roost.storage.files.groups.store import find_group
from roost.storage.files.model import FileNotFound
from roost.storage.files.service import FileService, get_file


class GroupService:
    def __init__(self, db: Database, files: FileService) -> None:
        self._db = db
        self._files = files

    async def create(self, tenant_id: str, network: ContentNetwork, name: str, *, is_public: bool) -> Group:
        """Create a group; names need not be unique. Raises InvalidGroup."""
        now = clock.utc_now()
        group = Group(ids.new_id(), tenant_id, network, normalize_group_name(name), is_public, now, now)
        await self._db.write(lambda connection: store.insert_group(connection, group))
        return group

    async def get(self, tenant_id: str, network: ContentNetwork, group_id: str) -> Group:
        """Return a group. Raises GroupNotFound."""
        return await self._db.read(lambda connection: get_group(connection, tenant_id, network, group_id))

    async def list(
        self, tenant_id: str, network: ContentNetwork, group_filter: GroupFilter, token: str | None, limit: int
    ) -> tuple[Sequence[Group], str | None]:
        """Return a page, newest first, and the token of the next page, if there is one. Raises InvalidPageToken."""
        after = PageCursor.parse(token) if token else None
        limit = min(max(limit, 1), PAGE_LIMIT)
        rows = await self._db.read_long(
            lambda connection: store.list_groups(connection, tenant_id, network, group_filter, after, limit + 1),
            tenant_id,
        )
        return page_cursor.split_page(rows, limit)

    async def list_slice(
        self, tenant_id: str, network: ContentNetwork, group_filter: GroupFilter, limit: int, offset: int
    ) -> Sequence[Group]:
        """Return up to `limit` groups after the first `offset`, newest first."""
        return await self._db.read_long(
            lambda connection: store.list_groups(connection, tenant_id, network, group_filter, None, limit, offset),
            tenant_id,
        )

    async def update(
        self, tenant_id: str, network: ContentNetwork, group_id: str, name: str | None, *, is_public: bool | None
    ) -> Group:
        """Change the name or the visibility; None keeps a value. Raises InvalidGroup, GroupNotFound."""
        new_name = None if name is None else normalize_group_name(name)

        def change(connection: Connection) -> Group:
            tenants.lock_tenant(connection, tenant_id)
            old = get_group(connection, tenant_id, network, group_id)
            visible = old.is_public if is_public is None else is_public
            new = replace(old, name=new_name or old.name, is_public=visible, updated_at=clock.utc_now())
            store.update_group(connection, new)
            return new

        return await self._db.write(change)

    async def delete(self, tenant_id: str, network: ContentNetwork, group_id: str) -> None:
        """Delete a group; its files are kept, in no group. Raises GroupNotFound."""

        def remove(connection: Connection) -> None:
            tenants.lock_tenant(connection, tenant_id)
            store.delete_group(connection, get_group(connection, tenant_id, network, group_id).id)

        await self._db.write(remove)

    async def add_files(
        self, tenant_id: str, network: ContentNetwork, group_id: str, files: Sequence[str | Cid]
    ) -> None:
        """Move files, named by id or CID, into a group, all or none. Raises FileNotFound, GroupNotFound."""
        await self._set_group(tenant_id, network, group_id, files, into=group_id)

    async def remove_files(
        self, tenant_id: str, network: ContentNetwork, group_id: str, files: Sequence[str | Cid]
    ) -> None:
        """Remove files, named by id or CID, from a group, all or none.

        Raises GroupNotFound, and FileNotFound also for a file that is not in the group.
        """
        await self._set_group(tenant_id, network, group_id, files, into=None)

    async def _set_group(
        self, tenant_id: str, network: ContentNetwork, group_id: str, files: Sequence[str | Cid], into: str | None
    ) -> None:
        def change(connection: Connection) -> None:
            tenants.lock_tenant(connection, tenant_id)  # the group cannot be deleted before the files are in it
            get_group(connection, tenant_id, network, group_id)
            for id_or_cid in dict.fromkeys(files):
                file = get_file(connection, tenant_id, network, id_or_cid)
                if into is None and file.metadata.group_id != group_id:
                    raise FileNotFound
                self._files.set_group(connection, file, into)

        await self._db.write(change)


def get_group(connection: Connection, tenant_id: str, network: ContentNetwork | None, group_id: str) -> Group:
    """Return a group of the tenant, without a `network` on either, in a transaction. Raises GroupNotFound."""
    group = find_group(connection, tenant_id, network, group_id)
    if group is None:
        raise GroupNotFound
    return group
