"""Domains of a tenant's own for its storage gateways."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sqlalchemy import Connection

from roost.domain_names.errors import InvalidDomain
from roost.domain_names.model import Domain, DomainOwner, DomainOwnerKind
from roost.domain_names.service import DomainService
from roost.storage.content.errors import ContentNotFound
from roost.storage.content.model import ContentNetwork, ContentScope
from roost.storage.content.reader import ContentReader
from roost.storage.content.unixfs.cid import IDENTITY, Cid
from roost.storage.content.unixfs.errors import InvalidCid
from roost.storage.gateways.model import StorageGateway
from roost.storage.gateways.service import StorageGatewayService


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
