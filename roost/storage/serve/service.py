"""Leads a visitor of a gateway to content. A restricted gateway knows what its tenant has on the public network; one
with controls all that is public, for those whom a control lets in. Private content is reached by its signed link alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from roost.storage.content.errors import ContentMissing, NotAFolder
from roost.storage.content.model import Network, Scope
from roost.storage.content.reader import Reader, Stat
from roost.storage.files.errors import FileMissing
from roost.storage.gateways.errors import GatewayMissing
from roost.storage.gateways.model import Plugin, StorageGateway, admits
from roost.storage.gateways.service import Gateways
from roost.storage.links.service import Links
from roost.storage.serve.errors import AccessDenied, NoSuchGateway, NotPinned, NotThere
from roost.storage.signatures.service import Signatures
from roost.storage.swaps.service import Swaps
from roost.storage.unixfs.cid import IDENTITY, RAW, Cid
from roost.storage.unixfs.errors import Malformed

PROBE = Cid(1, RAW, IDENTITY, b"")
"""The empty content, `bafkqaaa`, by which clients find out whether this is a gateway (ipfs/specs, trustless gateway).
Other content that is in its CID is nobody's in particular, and not served."""
LONGEST_WAY = 64
"""Folders between a root and what is asked for."""


@dataclass(frozen=True)
class Visitor:
    """What controls look at: a gateway token, the address, `Origin` or else `Referer`."""

    token: str | None
    ip: str | None
    origin: str | None


@dataclass(frozen=True)
class Found:
    """What a visitor gets to: `steps` are the root and what each segment of the path led to.

    gateway: the one that was asked. shared: whether everybody may have it, so that caches may keep it for all.
    lasting: whether the address will always mean this content. signature: a wallet's, of the root.
    """

    gateway: StorageGateway
    scope: Scope
    steps: Sequence[Stat]
    shared: bool
    lasting: bool = True
    signature: str | None = None

    @property
    def end(self) -> Stat:
        return self.steps[-1]


class Serving:
    def __init__(self, gateways: Gateways, swaps: Swaps, signatures: Signatures, links: Links, reader: Reader) -> None:
        self._gateways = gateways
        self._swaps = swaps
        self._signatures = signatures
        self._links = links
        self._reader = reader

    async def public(self, name: str, visitor: Visitor, cid: Cid, path: Sequence[str]) -> Found:
        """What is public at that path. Raises NoSuchGateway, AccessDenied, NotPinned, NotThere."""
        gateway = await self._admitted(name, visitor)
        scope = Scope(Network.PUBLIC, gateway.tenant_id if gateway.is_restricted else None)
        return await self._found(gateway, scope, cid, path, shared=gateway.is_restricted)

    async def private(self, name: str, method: str, url: str, cid: Cid, path: Sequence[str]) -> Found:
        """What is the private content of the gateway's tenant at the path of a link that the tenant signed.

        The link is looked at first, and tells nothing of what is there. Raises NoSuchGateway, LinkRefused, LinkExpired,
        NotPinned, NotThere.
        """
        gateway = await self._named(name)
        await self._links.check(gateway.tenant_id, method, url)
        scope = Scope(Network.PRIVATE, gateway.tenant_id)
        return replace(await self._found(gateway, scope, cid, path, shared=False), lasting=False)

    async def _found(
        self, gateway: StorageGateway, scope: Scope, cid: Cid, path: Sequence[str], *, shared: bool
    ) -> Found:
        """What the gateway serves for that CID, with what its plugins add."""
        served = await self._swaps.served(gateway, scope.network, cid)
        steps = await self._way(scope, served, path)
        signature = await self._signature(gateway, scope.network, served)
        return Found(gateway, scope, steps, shared, Plugin.HOT_SWAPS not in gateway.plugins, signature)

    async def _signature(self, gateway: StorageGateway, network: Network, cid: Cid) -> str | None:
        if Plugin.CONTENT_ADDRESSABLE not in gateway.plugins:
            return None
        try:
            found = await self._signatures.find(gateway.tenant_id, network, cid)
        except FileMissing:  # served as a part of something else
            return None
        return None if found is None else found.signature

    async def _named(self, name: str) -> StorageGateway:
        try:
            return await self._gateways.by_domain(name)
        except GatewayMissing:
            raise NoSuchGateway from None

    async def _admitted(self, name: str, visitor: Visitor) -> StorageGateway:
        gateway = await self._named(name)
        if not admits(gateway, visitor.token, visitor.ip, visitor.origin):
            raise AccessDenied
        return gateway

    async def _way(self, scope: Scope, cid: Cid, path: Sequence[str]) -> Sequence[Stat]:
        if len(path) > LONGEST_WAY:
            raise NotThere
        if cid.hash == IDENTITY and cid != PROBE:
            raise NotPinned
        try:
            root = await self._reader.stat(scope, cid)
        except ContentMissing:
            raise NotPinned from None
        except Malformed:
            raise NotThere from None
        try:
            return await self._reader.resolve(scope, root, path)
        except (ContentMissing, NotAFolder, Malformed):
            raise NotThere from None
