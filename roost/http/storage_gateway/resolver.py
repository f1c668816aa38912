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
from roost.http.storage_gateway.request import PATH_DEPTH_LIMIT, GatewayRequest
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
    lasting: bool
    signature: str | None

    @property
    def end(self) -> ContentStat:
        return self.steps[-1]


@dataclass(frozen=True)
class GatewayResolver:
    _gateways: StorageGatewayService
    _swaps: SwapService
    _signatures: SignatureService
    _links: SignedUrlService
    _reader: ContentReader

    async def resolve(self, request: GatewayRequest) -> ResolvedContent:
        """Resolve the content of a request: a signed URL is its own admission, and is checked before anything is read.

        Raises UnknownGateway, GatewayAccessDenied, SignedUrlRefused, SignedUrlExpired, ContentNotServed, PathNotFound,
        UnreadablePath.
        """
        gateway = await self._find_gateway(request.gateway)
        if request.is_private and not request.is_paid:
            await self._links.verify_download(gateway.tenant_id, request.method, request.url)
        elif not is_request_admitted(gateway, request.token, request.ip, request.origin):
            raise GatewayAccessDenied
        network = ContentNetwork.PRIVATE if request.is_private else ContentNetwork.PUBLIC
        scope = ContentScope(network, gateway.tenant_id if request.is_private or gateway.is_restricted else None)
        served = await self._swaps.find_served_cid(gateway, network, request.cid)
        steps = await self._walk(scope, served, request.path)
        return ResolvedContent(
            gateway,
            network,
            scope,
            steps,
            shared=gateway.is_restricted and not request.is_private,
            lasting=request.names_cid and not request.is_private and Plugin.HOT_SWAPS not in gateway.plugins,
            signature=await self._signature(gateway, network, served),
        )

    async def resolve_path(self, content: ResolvedContent, path: Sequence[str]) -> ResolvedContent:
        """Resolve another path below the same root. Raises PathNotFound, UnreadablePath."""
        return replace(content, steps=await self._follow(content.scope, content.steps[0], path))

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
