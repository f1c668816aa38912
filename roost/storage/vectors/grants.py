"""Which groups and files a caller may search: a key all of its tenant, an agent those of groups granted to it."""

from collections.abc import Sequence

from roost.core import clock
from roost.core.db import Connection, Database
from roost.identity import tenants
from roost.identity.caller import Caller
from roost.identity.errors import UnknownAgent
from roost.identity.gateway_tokens import GatewayTokens
from roost.storage.files.groups.model import Group, GroupNotFound
from roost.storage.files.groups.service import find_group, get_group
from roost.storage.files.model import File, FileNotFound
from roost.storage.files.service import find_file
from roost.storage.vectors import store
from roost.storage.vectors.model import GroupGrant


class VectorGrantService:
    """The database deletes grants with their group, and with the gateway token of a deleted agent."""

    def __init__(self, db: Database, agents: GatewayTokens) -> None:
        self._db = db
        self._agents = agents

    async def grant(self, tenant_id: str, group_id: str, agent_id: str) -> None:
        """Allow an agent of the tenant to search a group. Idempotent. Raises GroupNotFound, UnknownAgent."""
        if await self._agents.get_tenant_id(agent_id) != tenant_id:
            raise UnknownAgent

        def add(connection: Connection) -> None:
            tenants.lock_tenant(connection, tenant_id)
            get_group(connection, tenant_id, None, group_id)
            grant = GroupGrant(group_id, agent_id, tenant_id, clock.utc_now())
            if not store.insert_grant(connection, grant) and not store.find_grant(connection, group_id, agent_id):
                raise UnknownAgent  # it was deleted meanwhile

        await self._db.write(add)

    async def revoke(self, tenant_id: str, group_id: str, agent_id: str) -> None:
        """Take the permission from an agent. Idempotent. Raises GroupNotFound."""

        def remove(connection: Connection) -> None:
            get_group(connection, tenant_id, None, group_id)
            store.delete_grant(connection, group_id, agent_id)

        await self._db.write(remove)

    async def list_agents(self, tenant_id: str, group_id: str) -> Sequence[GroupGrant]:
        """List the grants of a group, the oldest first. Raises GroupNotFound."""

        def read(connection: Connection) -> Sequence[GroupGrant]:
            get_group(connection, tenant_id, None, group_id)
            return store.list_grants(connection, group_id)

        return await self._db.read(read)

    async def list_groups(self, caller: Caller) -> Sequence[Group]:
        """List the groups that the calling agent may search; to a key, those that any agent may search."""

        def read(connection: Connection) -> Sequence[Group]:
            granted = store.list_granted_groups(connection, caller.tenant_id, caller.agent_id)
            groups = (find_group(connection, caller.tenant_id, None, group_id) for group_id in granted)
            return [group for group in groups if group is not None]

        return await self._db.read_long(read, caller.tenant_id)


def get_searchable_group(connection: Connection, caller: Caller, group_id: str) -> Group:
    """Return a group, on either network. Raises GroupNotFound, also without a grant."""
    group = get_group(connection, caller.tenant_id, None, group_id)
    if not _is_granted(connection, caller, group_id):
        raise GroupNotFound
    return group


def get_searchable_file(connection: Connection, caller: Caller, file_id: str) -> File:
    """Return a file, on either network. Raises FileNotFound, also for an agent without a grant of the file's group."""
    file = find_file(connection, caller.tenant_id, file_id)
    if file is None or not _is_granted(connection, caller, file.metadata.group_id):
        raise FileNotFound
    return file


def _is_granted(connection: Connection, caller: Caller, group_id: str | None) -> bool:
    if caller.agent_id is None:
        return True
    return group_id is not None and store.find_grant(connection, group_id, caller.agent_id) is not None
