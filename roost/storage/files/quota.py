"""Storage quota of a tenant by its plan: bytes of stored content on both networks."""

from collections.abc import Mapping

from sqlalchemy import Connection

from roost.core.db import Database
from roost.identity import tenants
from roost.identity.caller import Plan
from roost.identity.model import Tenant
from roost.storage.content import service as content
from roost.storage.files.errors import StorageQuotaExceeded

Capacities = Mapping[Plan, int | None]
"""Bytes that a tenant may store; None is unlimited."""
UNLIMITED: Capacities = dict.fromkeys(Plan)


class StorageQuota:
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
