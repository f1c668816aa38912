"""Who may reach model servers on this machine: agents of the operator's own tenant, on a machine of its own.

Asking loopback ports for other tenants would show them what runs on the host.
"""

from collections.abc import Mapping, Sequence

from roost.agents.model_servers.errors import ModelServersClosed
from roost.agents.model_servers.model import ModelServerAddress
from roost.agents.registry.repository import find_tenant_id
from roost.core.db import Connection, Database
from roost.identity import tenants
from roost.identity.model import DEFAULT_TENANT


class ModelServerAccess:
    def __init__(self, db: Database, ports: Mapping[str, int], *, is_personal: bool) -> None:
        """Open `ports` (provider -> port); `is_personal`: only programs of this machine reach the server."""
        self._db = db
        self._is_personal = is_personal
        self.addresses: Sequence[ModelServerAddress] = [ModelServerAddress(*one) for one in ports.items()]

    async def admits(self, tenant_id: str) -> bool:
        """Return whether the tenant may reach the addresses."""
        if not self._is_personal or not self.addresses:
            return False
        return await self._db.read(lambda connection: _is_operator(connection, tenant_id))

    async def require(self, tenant_id: str) -> None:
        """Raise ModelServersClosed unless the tenant may reach the addresses."""
        if not await self.admits(tenant_id):
            raise ModelServersClosed

    async def admits_agent(self, agent_id: str, url: str) -> bool:
        """Return whether the agent may reach `url`, because it is exactly one of the addresses."""
        if url not in {address.base_url for address in self.addresses}:
            return False
        tenant_id = await self._db.read(lambda connection: find_tenant_id(connection, agent_id))
        return tenant_id is not None and await self.admits(tenant_id)


def _is_operator(connection: Connection, tenant_id: str) -> bool:
    return tenants.get_tenant(connection, tenant_id).name == DEFAULT_TENANT
