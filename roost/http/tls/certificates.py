"""Certificates: which names get one on demand, and whether a valid one is served for a name."""

import asyncio
import os
import ssl
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Depends, Response

from roost.core import ids
from roost.core.machine.unix_socket import Stream
from roost.core.problem import NotFound, Problem
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
    """Names that our own Caddy or the operator's asks for; ours pauses a name that the ACME server refused.

    Asked at each handshake for a name without a certificate, so anyone can ask for any name: a name of an unknown form
    costs no I/O, and others one look-up in ten seconds.
    """

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


@dataclass(frozen=True)
class CertificateChecker:
    """Checks by a TLS handshake that a valid certificate is served for a name, and says in words why not.

    connect: opens a connection to what terminates TLS for a name. authorities: PEM files beside the system's.

    proxy: our own one, which obtains a missing certificate at the handshake.
    """

    _connect: Callable[[str], Awaitable[Stream]]
    _authorities: Sequence[Path] = ()
    _proxy: TlsProxy | None = None
    _seconds: float = 30.0

    async def check(self, name: str) -> str | None:
        """Return why no valid certificate is served for the name; None if one is."""
        if self._proxy is not None:
            await self._proxy.apply_changes()
        if self._proxy is not None and (seconds := self._proxy.paused_seconds(name)):
            return _describe(name, f"{self._proxy.explain_failure(name)}. The next attempt is in {seconds:.0f} s")
        handshake = asyncio.create_task(self._describe_handshake(name))
        if self._proxy is None:
            return await handshake
        refused = asyncio.create_task(self._proxy.wait_for_failure(name))
        try:
            await asyncio.wait({handshake, refused}, return_when=asyncio.FIRST_COMPLETED)
            return _describe(name, refused.result()) if refused.done() else handshake.result()
        finally:
            handshake.cancel()
            refused.cancel()

    async def _describe_handshake(self, name: str) -> str | None:
        try:
            async with asyncio.timeout(self._seconds):
                await self._shake_hands(name)
        except ssl.SSLCertVerificationError as error:
            return f"The certificate for {name} is not valid: {error.verify_message}"
        except TimeoutError:
            return _describe(name, f"none was served within {self._seconds:.0f} s")
        except Problem as problem:
            return _describe(name, problem.message)
        except ssl.SSLError:
            return _describe(name, "the handshake was refused")
        except OSError as error:
            return _describe(name, os.strerror(error.errno) if error.errno else "the connection was closed")
        return None

    async def _shake_hands(self, name: str) -> None:
        context = ssl.create_default_context()
        for path in self._authorities:
            context.load_verify_locations(path)
        _, writer = await self._connect(name)
        try:
            await writer.start_tls(context, server_hostname=name, ssl_handshake_timeout=self._seconds)
        finally:
            writer.transport.abort()


def _describe(name: str, failure: str) -> str:
    return f"There is no certificate for {name}: {failure}"
