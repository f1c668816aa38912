"""Who may reach model servers on this machine: the operator and its agents, on a machine of its own.

Asking loopback ports for other tenants would show them what runs on the host.
"""

from collections.abc import Mapping, Sequence

from roost.agents.models.servers.errors import ModelServersClosed
from roost.agents.models.servers.model import ModelServerAddress
from roost.agents.registry.repository import find_tenant_id
from roost.core.db import Connection, Database
from roost.identity.caller import Caller
from roost.identity.tenants import is_operator, is_operator_tenant


class ModelServerAccess:
    def __init__(self, db: Database, ports: Mapping[str, int], *, is_personal: bool) -> None:
        """Open `ports` (provider -> port); `is_personal`: only programs of this machine reach the server."""
        self._db = db
        self.addresses: Sequence[ModelServerAddress] = [ModelServerAddress(*one) for one in ports.items()]
        self._is_open = is_personal and bool(ports)

    async def admits(self, caller: Caller) -> bool:
        """Return whether the caller may look for the servers and choose one."""
        return self._is_open and await self._db.read(lambda connection: is_operator(connection, caller))

    async def require(self, caller: Caller) -> None:
        """Raise ModelServersClosed unless the caller may look for the servers and choose one."""
        if not await self.admits(caller):
            raise ModelServersClosed

    async def admits_agent(self, agent_id: str, url: str) -> bool:
        """Return whether the agent may reach `url`: it is the operator's, and `url` is exactly one of the addresses."""
        if not self._is_open or url not in {address.base_url for address in self.addresses}:
            return False

        def read(connection: Connection) -> bool:
            tenant_id = find_tenant_id(connection, agent_id)
            return tenant_id is not None and is_operator_tenant(connection, tenant_id)

        return await self._db.read(read)
