"""How much a tenant may keep by its plan, and how much it keeps: bytes of stored content, on both networks."""

from collections.abc import Mapping

from sqlalchemy import Connection

from roost.core.db import Database
from roost.identity import tenants
from roost.identity.caller import Plan
from roost.identity.model import Tenant
from roost.storage.content import service as content
from roost.storage.files.errors import StorageQuotaExceeded

Capacities = Mapping[Plan, int | None]
"""Bytes that a tenant may keep, None being any number."""
UNLIMITED: Capacities = dict.fromkeys(Plan)


class StorageQuota:
    def __init__(self, db: Database, capacities: Capacities) -> None:
        self._db = db
        self._capacities = capacities

    async def usage(self, tenant_id: str) -> tuple[int, int | None]:
        """How many bytes the tenant keeps, and how many it may; None for any number."""

        def read(connection: Connection) -> tuple[int, int | None]:
            plan = tenants.get_tenant(connection, tenant_id).plan
            return content.stored_bytes(connection, tenant_id), self._capacities[plan]

        return await self._db.read(read)

    def room(self, connection: Connection, tenant: Tenant) -> int | None:
        """How many more bytes the tenant may keep, less than none where it keeps too many; None for any number."""
        most = self._capacities[tenant.plan]
        return None if most is None else most - content.stored_bytes(connection, tenant.id)

    def check(self, connection: Connection, tenant: Tenant, more: int = 0) -> None:
        """That what is kept and `more` bytes are not too many; exact while the tenant is held. Raises StorageFull."""
        room = self.room(connection, tenant)
        if room is not None and more > room:
            raise StorageQuotaExceeded
