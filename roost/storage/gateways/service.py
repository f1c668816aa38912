"""Storage gateways of a tenant: made, found, controlled, equipped. Names are given once and never again.

A tenant's row is held while its gateways change, so that limits are exact under any number of parallel calls.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from sqlalchemy import Connection

from roost.core import clock, ids
from roost.core.db import Database
from roost.core.sensitive import Sensitive
from roost.core.ttl_cache import TTLCache
from roost.identity import tenants
from roost.storage.gateways import model, store
from roost.storage.gateways.errors import (
    AccessControlLimitReached,
    AccessControlNotFound,
    DomainTaken,
    GatewayLimitReached,
    GatewayNotFound,
    PluginNotFound,
)
from roost.storage.gateways.model import AccessControl, AccessControlKind, Plugin, StorageGateway

T = TypeVar("T")


class StorageGatewayService:
    def __init__(self, db: Database, origin: Callable[[str], str] = "http://{}.gateways.localhost".format) -> None:
        """origin: the public origin of the gateway of a name."""
        self._db = db
        self._recent = TTLCache[str, StorageGateway]()
        self.origin = origin

    async def by_domain(self, name: str) -> StorageGateway:
        """The gateway of that label, whoever's it is, as it was half a second ago at most. Raises GatewayMissing."""
        if (known := self._recent.get(name)) is not None:
            return known
        found = _found(await self._db.read(lambda connection: store.by_domain(connection, name)))
        self._recent.put(name, found)
        return found

    async def default(self, tenant_id: str) -> StorageGateway:
        """The tenant's oldest gateway; its first is made when it never had one. Raises GatewayMissing."""
        found, _ = await self.list(tenant_id, 0, 1)
        return _found(found[0] if found else None)

    async def list(self, tenant_id: str, offset: int, limit: int) -> tuple[Sequence[StorageGateway], int]:
        """Some of the tenant's gateways, the oldest first, and how many there are; there is one at first use."""

        def look(connection: Connection) -> tuple[Sequence[StorageGateway], int]:
            return store.page(connection, tenant_id, offset, limit), store.count(connection, tenant_id)

        page, count = await self._db.read(look)
        if count == 0:
            await self._db.write(lambda connection: _begin(connection, tenant_id))
            page, count = await self._db.read(look)
        return page, count

    async def get(self, tenant_id: str, gateway_id: str) -> StorageGateway:
        """Raises GatewayMissing."""
        return await self._db.read(lambda connection: _mine(connection, tenant_id, gateway_id))

    async def create(self, tenant_id: str, domain: str) -> StorageGateway:
        """Raises InvalidDomain, DomainTaken, GatewayLimit."""
        label = model.checked_label(domain)

        def add(connection: Connection) -> StorageGateway:
            tenants.lock_tenant(connection, tenant_id)
            if store.count(connection, tenant_id) >= model.GATEWAY_LIMIT:
                raise GatewayLimitReached
            gateway = StorageGateway(ids.new_id(), tenant_id, label, clock.utc_now())
            if not store.add(connection, gateway):
                raise DomainTaken
            return gateway

        return await self._db.write(add)

    async def delete(self, tenant_id: str, gateway_id: str) -> None:
        """Raises GatewayMissing."""

        def remove(connection: Connection) -> None:
            gateway = _mine(connection, tenant_id, gateway_id)
            store.mark_deleted(connection, gateway.id, clock.utc_now())

        await self._db.write(remove)
        self._forget(gateway_id)

    async def exists(self, domain: str) -> bool:
        """Whether nobody can have that name any more. Raises InvalidDomain."""
        label = model.checked_label(domain)
        return await self._db.read(lambda connection: store.is_taken(connection, label))

    async def add_token(self, tenant_id: str, gateway_id: str) -> tuple[AccessControl, Sensitive[str]]:
        """A new access token, which is shown this once. Raises GatewayMissing, ControlLimit."""
        token = ids.new_token(model.TOKEN_PREFIX)
        control = AccessControl(
            ids.new_id(), AccessControlKind.TOKEN, model.shown(token), clock.utc_now(), proof=model.digest(token)
        )
        await self._add_control(tenant_id, gateway_id, control)
        return control, Sensitive(token)

    async def allow(self, tenant_id: str, gateway_id: str, kind: AccessControlKind, value: str) -> AccessControl:
        """Let in an address range or a host; one that is there stays. Raises GatewayMissing, InvalidControl."""
        checked = model.checked_range(value) if kind is AccessControlKind.ADDRESS else model.checked_host(value)
        return await self._add_control(
            tenant_id, gateway_id, AccessControl(ids.new_id(), kind, checked, clock.utc_now())
        )

    async def withdraw(self, tenant_id: str, gateway_id: str, kind: AccessControlKind, name: str) -> None:
        """Take a control away, by its id or its value. Raises GatewayMissing, ControlMissing."""

        def remove(connection: Connection, gateway: StorageGateway) -> None:
            control = next((one for one in gateway.controls if one.kind is kind and name in (one.id, one.value)), None)
            if control is None:
                raise AccessControlNotFound
            store.remove_control(connection, gateway.id, control.id)

        await self._change(tenant_id, gateway_id, remove)

    async def install(self, tenant_id: str, gateway_id: str, plugin_id: int) -> StorageGateway:
        """Install a plugin; one that is there stays. Raises GatewayMissing, PluginMissing."""
        plugin = _plugin(plugin_id)

        def add(connection: Connection, gateway: StorageGateway) -> StorageGateway:
            store.install(connection, gateway.id, plugin, clock.utc_now())
            return gateway

        return await self._change(tenant_id, gateway_id, add)

    async def uninstall(self, tenant_id: str, gateway_id: str, plugin_id: int) -> None:
        """Raises GatewayMissing, PluginMissing."""
        plugin = _plugin(plugin_id)

        def remove(connection: Connection, gateway: StorageGateway) -> None:
            if not store.uninstall(connection, gateway.id, plugin):
                raise PluginNotFound

        await self._change(tenant_id, gateway_id, remove)

    async def _add_control(self, tenant_id: str, gateway_id: str, control: AccessControl) -> AccessControl:
        def add(connection: Connection, gateway: StorageGateway) -> AccessControl:
            alike = [one for one in gateway.controls if one.kind is control.kind]
            there = next((one for one in alike if one.proof is None and one.value == control.value), None)
            if there is not None:
                return there
            if len(alike) >= model.CONTROL_LIMIT:
                raise AccessControlLimitReached
            store.add_control(connection, gateway.id, control)
            return control

        return await self._change(tenant_id, gateway_id, add)

    async def _change(self, tenant_id: str, gateway_id: str, act: Callable[[Connection, StorageGateway], T]) -> T:
        """Run `act` on the tenant's gateway while no one else changes it. Raises GatewayNotFound."""

        def alone(connection: Connection) -> T:
            tenants.lock_tenant(connection, tenant_id)
            return act(connection, _mine(connection, tenant_id, gateway_id))

        try:
            return await self._db.write(alone)
        finally:
            self._forget(gateway_id)

    def _forget(self, gateway_id: str) -> None:
        self._recent.drop(lambda gateway: gateway.id == gateway_id)


def _begin(connection: Connection, tenant_id: str) -> None:
    """Give the tenant its first gateway; not one who had any before and wanted none."""
    tenants.lock_tenant(connection, tenant_id)
    if store.count(connection, tenant_id, deleted=True) == 0:
        store.add(connection, StorageGateway(ids.new_id(), tenant_id, ids.new_host_label(), clock.utc_now()))


def _mine(connection: Connection, tenant_id: str, gateway_id: str) -> StorageGateway:
    return _found(store.get(connection, tenant_id, gateway_id))


def _found(gateway: StorageGateway | None) -> StorageGateway:
    if gateway is None:
        raise GatewayNotFound
    return gateway


def _plugin(number: int) -> Plugin:
    try:
        return Plugin(number)
    except ValueError:
        raise PluginNotFound from None
