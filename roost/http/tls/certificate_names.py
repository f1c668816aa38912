"""The names that get a certificate on demand: those that this server serves.

Asked at each handshake for a name without a certificate, so anyone can ask for any name: a name of an unknown form
costs no I/O, and others one look-up in ten seconds.
"""

from dataclasses import dataclass, field
from typing import Annotated

from fastapi import APIRouter, Depends, Response

from roost.core import ids
from roost.core.problem import NotFound
from roost.core.ttl_cache import TTLCache
from roost.drivers.tls_proxy.contract import TlsProxy
from roost.http.stack.address import HostAddress, HostAddresses
from roost.identity.gateway_tokens import GatewayTokens
from roost.storage.gateways.service import StorageGatewayService
from roost.web.service_registry import provide_service
from roost.web.url_rule import HostKind

PERMISSION_PATH = "/tls/permission"


@dataclass(frozen=True)
class CertificateNames:
    """Names that our own Caddy or the operator's asks for; ours pauses a name that the ACME server refused."""

    _addresses: HostAddresses
    _tokens: GatewayTokens
    _gateways: StorageGatewayService
    _proxy: TlsProxy | None = None
    _known: TTLCache[str, bool] = field(default_factory=lambda: TTLCache(10.0, 10_000), init=False)

    async def admits(self, name: str) -> bool:
        """Return whether the name gets a certificate.

        Origins of single CIDs get none: their number has no bound, so they need a wildcard certificate in a file.
        """
        address = None if ":" in name or name.endswith(".") else self._addresses.parse(name)
        if address is None or address.kind is HostKind.LOCAL:
            return False
        if self._proxy is not None and self._proxy.paused_seconds(name) > 0:
            return False
        if address.domain is not None:
            return True
        if address.cid is not None:
            return False
        known = self._known.get(name)
        if known is None:
            known = await self._is_served(address)
            self._known.put(name, known)
        return known

    async def _is_served(self, address: HostAddress) -> bool:
        if address.agent_id is not None and not ids.is_host_label(address.agent_id):
            return False
        try:
            if address.agent_id is not None:
                await self._tokens.get_tenant_id(address.agent_id)
            elif address.gateway is not None:
                await self._gateways.get_by_domain(address.gateway)
        except NotFound:
            return False
        return True


permission_router = APIRouter(tags=["health"])
"""The route that Caddy's `on_demand` asks; the URL map serves it to programs of this machine only."""


@permission_router.get(PERMISSION_PATH, include_in_schema=False)
async def check_permission(
    names: Annotated[CertificateNames, Depends(provide_service(CertificateNames))], domain: str = ""
) -> Response:
    """Answer 200 if the name gets a certificate, else 403."""
    return Response(status_code=200 if await names.admits(domain) else 403)
