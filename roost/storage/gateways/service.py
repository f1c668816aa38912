"""Storage gateways of a tenant, with access controls, plugins and domains. Names of deleted gateways are not reused.

Changes lock the tenant's row, so that concurrent calls cannot exceed a limit.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from roost.core import clock, ids
from roost.core.db import Connection, Database
from roost.core.sensitive import Sensitive
from roost.core.ttl_cache import TTLCache
from roost.domain_names.errors import InvalidDomain
from roost.domain_names.model import Domain, DomainOwner, DomainOwnerKind
from roost.domain_names.service import DomainService
from roost.identity import tenants
from roost.storage.content.errors import ContentNotFound
from roost.storage.content.model import ContentNetwork, ContentScope
from roost.storage.content.reader import ContentReader
from roost.storage.content.unixfs.cid import IDENTITY, Cid
from roost.storage.content.unixfs.errors import InvalidCid
from roost.storage.gateways import model, store
from roost.storage.gateways.model import (
    AccessControl,
    AccessControlKind,
    AccessControlLimitReached,
    AccessControlNotFound,
    GatewayDomainTaken,
    GatewayLimitReached,
    Plugin,
    PluginNotFound,
    StorageGateway,
)

T = TypeVar("T")


class StorageGatewayService:
    def __init__(self, db: Database, origin: Callable[[str], str] = "http://{}.gateways.localhost".format) -> None:
        """Create the service; `origin` returns the public origin of a gateway by name.

        `delete_listeners` are called in each transaction that deletes a gateway.
        """
        self._db = db
        self._cache = TTLCache[str, StorageGateway]()
        self.delete_listeners: list[Callable[[Connection, StorageGateway], None]] = []
        self.origin = origin

    async def get_by_domain(self, name: str) -> StorageGateway:
        """Return the gateway of any tenant by name, cached for half a second. Raises GatewayNotFound."""
        if (known := self._cache.get(name)) is not None:
            return known
        found = await self._db.read(lambda connection: store.get_gateway_by_domain(connection, name))
        self._cache.put(name, found)
        return found

    async def list(self, tenant_id: str, offset: int, limit: int) -> tuple[Sequence[StorageGateway], int]:
        """Return a page of the tenant's gateways, oldest first, and their count; create the first on first use."""

        def look(connection: Connection) -> tuple[Sequence[StorageGateway], int]:
            page = store.list_gateways(connection, tenant_id, offset, limit)
            return page, store.count_gateways(connection, tenant_id)

        page, count = await self._db.read(look)
        if count == 0:
            await self._db.write(lambda connection: _create_first(connection, tenant_id))
            page, count = await self._db.read(look)
        return page, count

    async def get(self, tenant_id: str, gateway_id: str) -> StorageGateway:
        """Return a gateway. Raises GatewayNotFound."""
        return await self._db.read(lambda connection: store.get_gateway(connection, tenant_id, gateway_id))

    async def create(self, tenant_id: str, domain: str) -> StorageGateway:
        """Create a gateway. Raises InvalidGatewayDomain, GatewayDomainTaken, GatewayLimitReached."""
        label = model.parse_label(domain)

        def add(connection: Connection) -> StorageGateway:
            tenants.lock_tenant(connection, tenant_id)
            if store.count_gateways(connection, tenant_id) >= model.GATEWAY_LIMIT:
                raise GatewayLimitReached
            gateway = StorageGateway(ids.new_id(), tenant_id, label, clock.utc_now())
            if not store.insert_gateway(connection, gateway):
                raise GatewayDomainTaken
            return gateway

        return await self._db.write(add)

    async def delete(self, tenant_id: str, gateway_id: str) -> None:
        """Delete a gateway. Raises GatewayNotFound."""

        def remove(connection: Connection) -> None:
            gateway = store.get_gateway(connection, tenant_id, gateway_id)
            store.mark_deleted(connection, gateway.id, clock.utc_now())
            for listener in self.delete_listeners:
                listener(connection, gateway)

        await self._db.write(remove)
        self._invalidate(gateway_id)

    async def is_domain_taken(self, domain: str) -> bool:
        """Return whether a name is or was in use. Raises InvalidGatewayDomain."""
        label = model.parse_label(domain)
        return await self._db.read(lambda connection: store.is_domain_taken(connection, label))

    async def create_access_token(self, tenant_id: str, gateway_id: str) -> tuple[AccessControl, Sensitive[str]]:
        """Create an access token, shown only once. Raises GatewayNotFound, AccessControlLimitReached."""
        token = ids.new_token(model.TOKEN_PREFIX)
        value, proof = model.abbreviate_token(token), model.hash_token(token)
        control = AccessControl(ids.new_id(), AccessControlKind.TOKEN, value, clock.utc_now(), proof)
        await self._add_control(tenant_id, gateway_id, control)
        return control, Sensitive(token)

    async def add_allowlist_entry(
        self, tenant_id: str, gateway_id: str, kind: AccessControlKind, value: str
    ) -> AccessControl:
        """Allow an address range or a host. Idempotent. Raises GatewayNotFound, InvalidAccessControl."""
        parsed = model.parse_ip_range(value) if kind is AccessControlKind.ADDRESS else model.parse_host(value)
        control = AccessControl(ids.new_id(), kind, parsed, clock.utc_now())
        return await self._add_control(tenant_id, gateway_id, control)

    async def remove_control(self, tenant_id: str, gateway_id: str, kind: AccessControlKind, name: str) -> None:
        """Remove a control by id or value. Raises GatewayNotFound, AccessControlNotFound."""

        def remove(connection: Connection, gateway: StorageGateway) -> None:
            control = next((one for one in gateway.controls if one.kind is kind and name in (one.id, one.value)), None)
            if control is None:
                raise AccessControlNotFound
            store.delete_control(connection, gateway.id, control.id)

        await self._change(tenant_id, gateway_id, remove)

    async def install_plugin(self, tenant_id: str, gateway_id: str, plugin_id: int) -> None:
        """Install a plugin. Idempotent. Raises GatewayNotFound, PluginNotFound."""
        plugin = _parse_plugin(plugin_id)

        def add(connection: Connection, gateway: StorageGateway) -> None:
            store.insert_plugin(connection, gateway.id, plugin, clock.utc_now())

        await self._change(tenant_id, gateway_id, add)

    async def uninstall_plugin(self, tenant_id: str, gateway_id: str, plugin_id: int) -> None:
        """Uninstall a plugin. Raises GatewayNotFound, PluginNotFound."""
        plugin = _parse_plugin(plugin_id)

        def remove(connection: Connection, gateway: StorageGateway) -> None:
            if not store.delete_plugin(connection, gateway.id, plugin):
                raise PluginNotFound

        await self._change(tenant_id, gateway_id, remove)

    async def _add_control(self, tenant_id: str, gateway_id: str, control: AccessControl) -> AccessControl:
        def add(connection: Connection, gateway: StorageGateway) -> AccessControl:
            same_kind = [one for one in gateway.controls if one.kind is control.kind]
            existing = next((one for one in same_kind if one.proof is None and one.value == control.value), None)
            if existing is not None:
                return existing
            if len(same_kind) >= model.CONTROL_LIMIT:
                raise AccessControlLimitReached
            store.insert_control(connection, gateway.id, control)
            return control

        return await self._change(tenant_id, gateway_id, add)

    async def _change(self, tenant_id: str, gateway_id: str, act: Callable[[Connection, StorageGateway], T]) -> T:
        """Run `act` on the tenant's gateway in a transaction that locks the tenant. Raises GatewayNotFound."""

        def run(connection: Connection) -> T:
            tenants.lock_tenant(connection, tenant_id)
            return act(connection, store.get_gateway(connection, tenant_id, gateway_id))

        try:
            return await self._db.write(run)
        finally:
            self._invalidate(gateway_id)

    def _invalidate(self, gateway_id: str) -> None:
        self._cache.drop(lambda gateway: gateway.id == gateway_id)


class GatewayDomainService:
    """`origin` returns the public origin of a host name."""

    def __init__(
        self,
        gateways: StorageGatewayService,
        reader: ContentReader,
        domains: DomainService,
        origin: Callable[[str], str],
    ) -> None:
        self._gateways = gateways
        self._reader = reader
        self._domains = domains
        self._origin = origin
        gateways.delete_listeners.append(self._remove_all)

    def origin(self, domain: Domain) -> str:
        return self._origin(domain.name)

    async def list_by_gateway(self, tenant_id: str) -> Mapping[str, Sequence[Domain]]:
        """Return the domains of a tenant's gateways by the gateway's name, first registered first."""
        found: dict[str, list[Domain]] = defaultdict(list)
        for domain in await self._domains.list_gateway_domains(tenant_id):
            found[domain.owner.id].append(domain)
        return found

    async def list(self, tenant_id: str, gateway_id: str) -> Sequence[Domain]:
        """List the domains of a gateway, first registered first. Raises GatewayNotFound."""
        return await self._domains.list(await self._get_owner(tenant_id, gateway_id))

    async def register(self, tenant_id: str, gateway_id: str, name: str, cid: str | None) -> Domain:
        """Register a domain, with `cid` for that content at its root.

        Raises GatewayNotFound, and the errors of `DomainService.register_custom`.
        """
        owner = await self._get_owner(tenant_id, gateway_id)
        return await self._domains.register_custom(owner, name, cid=_parse_cid(cid))

    async def update(self, tenant_id: str, gateway_id: str, domain_id: str, cid: str | None) -> Domain:
        """Change the content at the root to what the gateway serves now, so that no site is replaced by nothing.

        Raises GatewayNotFound, DomainNotFound, InvalidDomain.
        """
        parsed = _parse_cid(cid)
        gateway = await self._gateways.get(tenant_id, gateway_id)
        if parsed is not None:
            await self._check_served(gateway, Cid.parse(parsed))
        return await self._domains.update(_owner(gateway), domain_id, lambda domain: replace(domain, cid=parsed))

    async def remove(self, tenant_id: str, gateway_id: str, domain_id: str) -> None:
        """Remove a domain. Raises GatewayNotFound, DomainNotFound."""
        await self._domains.remove(await self._get_owner(tenant_id, gateway_id), domain_id)

    async def verify(self, tenant_id: str, gateway_id: str, domain_id: str) -> Domain:
        """Verify ownership and certificate. Raises GatewayNotFound, and the errors of `DomainService.verify`."""
        return await self._domains.verify(await self._get_owner(tenant_id, gateway_id), domain_id)

    async def _check_served(self, gateway: StorageGateway, cid: Cid) -> None:
        scope = ContentScope(ContentNetwork.PUBLIC, gateway.tenant_id if gateway.is_restricted else None)
        try:
            await self._reader.stat(scope, cid)
        except ContentNotFound:
            raise InvalidDomain(f"cid {cid} is no content that this gateway serves: upload or pin it first") from None

    async def _get_owner(self, tenant_id: str, gateway_id: str) -> DomainOwner:
        return _owner(await self._gateways.get(tenant_id, gateway_id))

    def _remove_all(self, connection: Connection, gateway: StorageGateway) -> None:
        self._domains.remove_all(connection, _owner(gateway))


def _create_first(connection: Connection, tenant_id: str) -> None:
    """Create the first gateway unless the tenant deleted all it had."""
    tenants.lock_tenant(connection, tenant_id)
    if store.count_gateways(connection, tenant_id, deleted=True) == 0:
        store.insert_gateway(connection, StorageGateway(ids.new_id(), tenant_id, ids.new_host_label(), clock.utc_now()))


def _parse_plugin(number: int) -> Plugin:
    try:
        return Plugin(number)
    except ValueError:
        raise PluginNotFound from None


def _owner(gateway: StorageGateway) -> DomainOwner:
    return DomainOwner(DomainOwnerKind.STORAGE_GATEWAY, gateway.domain, gateway.tenant_id)


def _parse_cid(text: str | None) -> str | None:
    """Return a CID as host names write it: version 1 in base32. Raises InvalidDomain."""
    if not text:
        return None
    try:
        cid = Cid.parse(text)
    except InvalidCid:
        raise InvalidDomain(f"cid must be a CID, got {text[:100]!r}") from None
    if cid.hash == IDENTITY:
        raise InvalidDomain("cid must not be an identity CID, whose content is in the CID itself")
    return str(cid if cid.version == 1 else replace(cid, version=1))
