"""Names of a tenant's own that are to lead to its gateways: noted, not served, for nobody checked whose they are."""

from sqlalchemy import Connection

from roost.core import clock, ids
from roost.core.db import Database
from roost.storage.gateways import model, store
from roost.storage.gateways.errors import CustomDomainLimit, CustomDomainMissing
from roost.storage.gateways.model import CustomDomain, StorageGateway
from roost.storage.gateways.service import change


class CustomDomains:
    def __init__(self, db: Database) -> None:
        self._db = db

    async def add(self, tenant_id: str, gateway_id: str, domain: str) -> CustomDomain:
        """Note a name that is to lead to the gateway. Raises GatewayMissing, InvalidDomain, CustomDomainLimit."""
        wanted = CustomDomain(ids.new_id(), model.checked_custom_domain(domain), clock.utc_now())

        def note(connection: Connection, gateway: StorageGateway) -> CustomDomain:
            if (there := next((o for o in gateway.custom_domains if o.domain == wanted.domain), None)) is not None:
                return there
            if len(gateway.custom_domains) >= model.CUSTOM_DOMAIN_LIMIT:
                raise CustomDomainLimit
            store.add_custom_domain(connection, gateway.id, wanted)
            return wanted

        return await change(self._db, tenant_id, gateway_id, note)

    async def remove(self, tenant_id: str, gateway_id: str, domain_id: str) -> None:
        """Raises GatewayMissing, CustomDomainMissing."""

        def forget(connection: Connection, gateway: StorageGateway) -> None:
            if not store.remove_custom_domain(connection, gateway.id, domain_id):
                raise CustomDomainMissing

        await change(self._db, tenant_id, gateway_id, forget)
