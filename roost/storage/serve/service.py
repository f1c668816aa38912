"""Leads a visitor of a gateway to content. A restricted gateway knows what its tenant has on the public network; one
with controls all that is public, for those whom a control lets in. Private content is reached by its signed link alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from roost.storage.content.errors import ContentNotAFolder, ContentNotFound
from roost.storage.content.model import ContentNetwork, ContentScope
from roost.storage.content.reader import ContentReader, ContentStat
from roost.storage.files.errors import FileNotFound
from roost.storage.gateways.errors import GatewayNotFound
from roost.storage.gateways.model import Plugin, StorageGateway, admits
from roost.storage.gateways.service import StorageGatewayService
from roost.storage.serve.errors import ContentNotServed, GatewayAccessDenied, PathNotFound, UnknownGateway
from roost.storage.signatures.service import SignatureService
from roost.storage.signed_urls.service import SignedUrlService
from roost.storage.swaps.service import SwapService
from roost.storage.unixfs.cid import IDENTITY, RAW, Cid
from roost.storage.unixfs.errors import MalformedContent

PROBE = Cid(1, RAW, IDENTITY, b"")
"""The empty content, `bafkqaaa`, by which clients find out whether this is a gateway (ipfs/specs, trustless gateway).
Other content that is in its CID is nobody's in particular, and not served."""
LONGEST_WAY = 64
"""Folders between a root and what is asked for."""


@dataclass(frozen=True)
class GatewayVisitor:
    """What controls look at: a gateway token, the address, `Origin` or else `Referer`."""

    token: str | None
    ip: str | None
    origin: str | None


@dataclass(frozen=True)
class ResolvedContent:
    """What a visitor gets to: `steps` are the root and what each segment of the path led to.

    gateway: the one that was asked. shared: whether everybody may have it, so that caches may keep it for all.
    lasting: whether the address will always mean this content. signature: a wallet's, of the root.
    """

    gateway: StorageGateway
    scope: ContentScope
    steps: Sequence[ContentStat]
    shared: bool
    lasting: bool = True
    signature: str | None = None

    @property
    def end(self) -> ContentStat:
        return self.steps[-1]


class GatewayResolver:
    def __init__(
        self,
        gateways: StorageGatewayService,
        swaps: SwapService,
        signatures: SignatureService,
        links: SignedUrlService,
        reader: ContentReader,
    ) -> None:
        self._gateways = gateways
        self._swaps = swaps
        self._signatures = signatures
        self._links = links
        self._reader = reader

    async def public(self, name: str, visitor: GatewayVisitor, cid: Cid, path: Sequence[str]) -> ResolvedContent:
        """What is public at that path. Raises NoSuchGateway, AccessDenied, NotPinned, NotThere."""
        gateway = await self._admitted(name, visitor)
        scope = ContentScope(ContentNetwork.PUBLIC, gateway.tenant_id if gateway.is_restricted else None)
        return await self._found(gateway, scope, cid, path, shared=gateway.is_restricted)

    async def private(self, name: str, method: str, url: str, cid: Cid, path: Sequence[str]) -> ResolvedContent:
        """What is the private content of the gateway's tenant at the path of a link that the tenant signed.

        The link is looked at first, and tells nothing of what is there. Raises NoSuchGateway, LinkRefused, LinkExpired,
        NotPinned, NotThere.
        """
        gateway = await self._named(name)
        await self._links.check(gateway.tenant_id, method, url)
        scope = ContentScope(ContentNetwork.PRIVATE, gateway.tenant_id)
        return replace(await self._found(gateway, scope, cid, path, shared=False), lasting=False)

    async def _found(
        self, gateway: StorageGateway, scope: ContentScope, cid: Cid, path: Sequence[str], *, shared: bool
    ) -> ResolvedContent:
        """What the gateway serves for that CID, with what its plugins add."""
        served = await self._swaps.served(gateway, scope.network, cid)
        steps = await self._way(scope, served, path)
        signature = await self._signature(gateway, scope.network, served)
        return ResolvedContent(gateway, scope, steps, shared, Plugin.HOT_SWAPS not in gateway.plugins, signature)

    async def _signature(self, gateway: StorageGateway, network: ContentNetwork, cid: Cid) -> str | None:
        if Plugin.CONTENT_ADDRESSABLE not in gateway.plugins:
            return None
        try:
            found = await self._signatures.find(gateway.tenant_id, network, cid)
        except FileNotFound:  # served as a part of something else
            return None
        return None if found is None else found.signature

    async def _named(self, name: str) -> StorageGateway:
        try:
            return await self._gateways.by_domain(name)
        except GatewayNotFound:
            raise UnknownGateway from None

    async def _admitted(self, name: str, visitor: GatewayVisitor) -> StorageGateway:
        gateway = await self._named(name)
        if not admits(gateway, visitor.token, visitor.ip, visitor.origin):
            raise GatewayAccessDenied
        return gateway

    async def _way(self, scope: ContentScope, cid: Cid, path: Sequence[str]) -> Sequence[ContentStat]:
        if len(path) > LONGEST_WAY:
            raise PathNotFound
        if cid.hash == IDENTITY and cid != PROBE:
            raise ContentNotServed
        try:
            root = await self._reader.stat(scope, cid)
        except ContentNotFound:
            raise ContentNotServed from None
        except MalformedContent:
            raise PathNotFound from None
        try:
            return await self._reader.resolve(scope, root, path)
        except (ContentNotFound, ContentNotAFolder, MalformedContent):
            raise PathNotFound from None
