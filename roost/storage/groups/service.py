"""Groups: named containers of files."""

from sqlalchemy import Connection

from roost.storage.content.model import Network
from roost.storage.groups import store
from roost.storage.groups.model import Group


class Groups:
    @staticmethod
    def find(connection: Connection, tenant_id: str, network: Network, group_id: str) -> Group | None:
        """The tenant's group, inside a transaction of the caller's."""
        return store.get(connection, tenant_id, network, group_id)
