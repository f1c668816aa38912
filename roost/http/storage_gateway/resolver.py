"""Resolve a request of a storage gateway to content: access controls, hot swap, CID, path.

A restricted gateway serves its tenant's public content to everyone; a gateway with access controls serves all public
content to the clients that a control admits. Private content needs a signed URL, or a payment, whose access controls
are the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from roost.http.storage_gateway.errors import (
    ContentNotServed,
    GatewayAccessDenied,
    PathNotFound,
    UnknownGateway,
    UnreadablePath,
)
from roost.storage.content.errors import ContentNotAFolder, ContentNotFound, EntryNotFound
from roost.storage.content.model import ContentNetwork, ContentScope
from roost.storage.content.reader import ContentReader, ContentStat
from roost.storage.content.unixfs.cid import DAG_PB, IDENTITY, RAW, Cid
from roost.storage.content.unixfs.errors import MalformedContent
from roost.storage.files.model import FileNotFound
from roost.storage.files.signatures.service import SignatureService
from roost.storage.files.signed_urls.service import SignedUrlService
from roost.storage.gateways.model import GatewayNotFound, Plugin, StorageGateway, is_request_admitted
from roost.storage.gateways.service import StorageGatewayService
from roost.storage.gateways.swaps.service import SwapService

PATH_DEPTH_LIMIT = 64
"""Segments of a path below the root."""


@dataclass(frozen=True)
class GatewayVisitor:
    """The client of a gateway request: gateway token, IP address, and `Origin` or else `Referer`."""

    token: str | None
    ip: str | None
    origin: str | None


@dataclass(frozen=True)
class ResolvedContent:
    """The content of a gateway request; `steps` are the root and the target of each path segment.

    shared: public caches may store it. lasting: the URL always leads to this content.
    signature: the wallet signature of the root.
    """

    gateway: StorageGateway
    network: ContentNetwork
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

    async def resolve_public(
        self, name: str, visitor: GatewayVisitor, cid: Cid, path: Sequence[str], *, lasting: bool = True
    ) -> ResolvedContent:
        """Resolve public content; `lasting` tells whether the URL names the CID.

        Raises UnknownGateway, GatewayAccessDenied, ContentNotServed, PathNotFound, UnreadablePath.
        """
        gateway = await self._find_gateway(name)
        if not is_request_admitted(gateway, visitor.token, visitor.ip, visitor.origin):
            raise GatewayAccessDenied
        tenant_id = gateway.tenant_id if gateway.is_restricted else None
        shared = gateway.is_restricted
        found = await self._resolve(gateway, ContentNetwork.PUBLIC, tenant_id, cid, path, shared=shared)
        return found if lasting else replace(found, lasting=False)

    async def resolve_private(self, name: str, method: str, url: str, cid: Cid, path: Sequence[str]) -> ResolvedContent:
        """Resolve private content of the gateway's tenant by a signed URL, which is checked first.

        Raises UnknownGateway, SignedUrlRefused, SignedUrlExpired, ContentNotServed, PathNotFound, UnreadablePath.
        """
        gateway = await self._find_gateway(name)
        await self._links.verify_download(gateway.tenant_id, method, url)
        found = await self._resolve(gateway, ContentNetwork.PRIVATE, gateway.tenant_id, cid, path, shared=False)
        return replace(found, lasting=False)

    async def resolve_paid(self, name: str, visitor: GatewayVisitor, cid: Cid, path: Sequence[str]) -> ResolvedContent:
        """Resolve private content of the gateway's tenant, which must be paid for, for a client that is admitted.

        Raises UnknownGateway, GatewayAccessDenied, ContentNotServed, PathNotFound, UnreadablePath.
        """
        gateway = await self._find_gateway(name)
        if not is_request_admitted(gateway, visitor.token, visitor.ip, visitor.origin):
            raise GatewayAccessDenied
        found = await self._resolve(gateway, ContentNetwork.PRIVATE, gateway.tenant_id, cid, path, shared=False)
        return replace(found, lasting=False)

    async def resolve_path(self, content: ResolvedContent, path: Sequence[str]) -> ResolvedContent:
        """Resolve another path below the same root. Raises PathNotFound, UnreadablePath."""
        return replace(content, steps=await self._follow(content.scope, content.steps[0], path))

    async def _resolve(
        self,
        gateway: StorageGateway,
        network: ContentNetwork,
        tenant_id: str | None,
        cid: Cid,
        path: Sequence[str],
        *,
        shared: bool,
    ) -> ResolvedContent:
        scope = ContentScope(network, tenant_id)
        served = await self._swaps.find_served_cid(gateway, network, cid)
        steps = await self._walk(scope, served, path)
        signature = await self._signature(gateway, network, served)
        lasting = Plugin.HOT_SWAPS not in gateway.plugins
        return ResolvedContent(gateway, network, scope, steps, shared, lasting, signature)

    async def _signature(self, gateway: StorageGateway, network: ContentNetwork, cid: Cid) -> str | None:
        if Plugin.CONTENT_ADDRESSABLE not in gateway.plugins:
            return None
        try:
            found = await self._signatures.find(gateway.tenant_id, network, cid)
        except FileNotFound:  # only a part of another file
            return None
        return None if found is None else found.signature

    async def _find_gateway(self, name: str) -> StorageGateway:
        try:
            return await self._gateways.get_by_domain(name)
        except GatewayNotFound:
            raise UnknownGateway from None

    async def _walk(self, scope: ContentScope, cid: Cid, path: Sequence[str]) -> Sequence[ContentStat]:
        if cid.hash == IDENTITY and cid.codec not in {RAW, DAG_PB}:
            raise ContentNotServed
        try:
            root = await self._reader.stat(scope, cid)
        except ContentNotFound:
            raise ContentNotServed from None
        except MalformedContent:
            raise UnreadablePath from None
        return await self._follow(scope, root, path)

    async def _follow(self, scope: ContentScope, root: ContentStat, path: Sequence[str]) -> Sequence[ContentStat]:
        if len(path) > PATH_DEPTH_LIMIT:
            raise PathNotFound
        try:
            return await self._reader.resolve(scope, root, path)
        except (EntryNotFound, ContentNotAFolder):
            raise PathNotFound from None
        except (ContentNotFound, MalformedContent):
            raise UnreadablePath from None
