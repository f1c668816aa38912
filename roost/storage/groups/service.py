"""Groups: named containers of files. Which files are in them is the files' own to say."""

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import Connection

from roost.core import clock, ids, page_cursor
from roost.core.db import Database
from roost.core.page_cursor import PageCursor
from roost.identity import tenants
from roost.storage.content.model import ContentNetwork
from roost.storage.groups import store
from roost.storage.groups.errors import GroupNotFound
from roost.storage.groups.model import PAGE_LIMIT, Group, GroupFilter, checked_name


class GroupService:
    def __init__(self, db: Database) -> None:
        self._db = db

    @staticmethod
    def find(connection: Connection, tenant_id: str, network: ContentNetwork, group_id: str) -> Group | None:
        """The tenant's group, inside a transaction of the caller's."""
        return store.get(connection, tenant_id, network, group_id)

    async def create(self, tenant_id: str, network: ContentNetwork, name: str, *, is_public: bool) -> Group:
        """Names may be given twice. Raises InvalidGroup."""
        now = clock.utc_now()
        group = Group(ids.new_id(), tenant_id, network, checked_name(name), is_public, now, now)
        await self._db.write(lambda connection: store.add(connection, group))
        return group

    async def get(self, tenant_id: str, network: ContentNetwork, group_id: str) -> Group:
        """Raises GroupMissing."""
        return await self._db.read(lambda connection: _found(connection, tenant_id, network, group_id))

    async def list(
        self, tenant_id: str, network: ContentNetwork, chosen: GroupFilter, token: str | None, limit: int
    ) -> tuple[Sequence[Group], str | None]:
        """A page, and the token of the next if there is one. Raises InvalidPage."""
        after = PageCursor.parse(token) if token else None
        limit = min(max(limit, 1), PAGE_LIMIT)
        rows = await self._db.read(
            lambda connection: store.page(connection, tenant_id, network, chosen, after, limit + 1)
        )
        return page_cursor.split_page(rows, limit)

    async def slice(
        self, tenant_id: str, network: ContentNetwork, chosen: GroupFilter, limit: int, offset: int
    ) -> Sequence[Group]:
        """Some groups, the newest first, behind `offset` others."""
        return await self._db.read(
            lambda connection: store.slice_of(connection, tenant_id, network, chosen, limit, offset)
        )

    async def update(
        self, tenant_id: str, network: ContentNetwork, group_id: str, name: str | None, *, is_public: bool | None
    ) -> Group:
        """The group with another name or openness; what is None stays. Raises InvalidGroup, GroupMissing."""
        checked = None if name is None else checked_name(name)

        def change(connection: Connection) -> Group:
            tenants.lock_tenant(connection, tenant_id)
            old = _found(connection, tenant_id, network, group_id)
            new = replace(
                old,
                name=old.name if checked is None else checked,
                is_public=old.is_public if is_public is None else is_public,
                updated_at=clock.utc_now(),
            )
            store.update(connection, new.id, new.name, new.updated_at, is_public=new.is_public)
            return new

        return await self._db.write(change)

    async def delete(self, tenant_id: str, network: ContentNetwork, group_id: str) -> None:
        """Its files stay, in no group. Raises GroupMissing."""

        def remove(connection: Connection) -> None:
            tenants.lock_tenant(connection, tenant_id)
            store.remove(connection, _found(connection, tenant_id, network, group_id).id)

        await self._db.write(remove)


def _found(connection: Connection, tenant_id: str, network: ContentNetwork, group_id: str) -> Group:
    group = store.get(connection, tenant_id, network, group_id)
    if group is None:
        raise GroupNotFound
    return group
