"""Services of domains, for both APIs and the edge, and TLS in front of the server: Caddy as a child of it."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path

from roost.app.core_services import CoreServices
from roost.core.db import LeasedTask
from roost.core.machine.unix_socket import Stream
from roost.core.periodic import PeriodicTask
from roost.domain_names.service import DomainMirror, DomainService, PlatformNames
from roost.drivers.dns.contract import DnsResolver
from roost.drivers.tls_proxy.caddy import CaddyProxy, find_caddy, read_caddy_version
from roost.drivers.tls_proxy.contract import TlsListeners, TlsOptions, TlsProxy
from roost.http.server.server import open_tls_listeners
from roost.http.tls.certificates import PERMISSION_PATH, CertificateChecker
from roost.net.dialer import PublicDialer
from roost.net.host_port import HostPort
from roost.settings import Settings

_BACKEND = "roost.sock"
_OWNERSHIP_INTERVAL = timedelta(hours=1)
_OWNERSHIP_SECONDS = 600.0


def open_tls_sockets(settings: Settings) -> TlsListeners | None:
    """Open the ports for HTTPS and HTTP; None without `tls`. Raises CannotListen."""
    return open_tls_listeners(settings.tls_host, settings.tls_port, settings.tls_http_port) if settings.tls else None


async def describe_tls(settings: Settings) -> str:
    """Describe how TLS is served. Raises TlsProxyFailed if it cannot be."""
    if settings.tls:
        version = await read_caddy_version(find_caddy(settings.caddy))
        return f"Caddy {version} on port {settings.tls_port}, certificates from {settings.acme_url}"
    if settings.public_scheme == "https":
        return "a proxy of yours in front; `roost proxy-config` prints a configuration for it"
    return "none; `roost up --tls` serves HTTPS (docs/guides/internet.md)"


def proxy_socket(settings: Settings) -> Path:
    """Return the path at which the server listens for its own TLS proxy."""
    return settings.data / "tls" / _BACKEND


def build_tls_proxy(settings: Settings, listeners: TlsListeners) -> TlsProxy:
    """Return Caddy for the settings. Raises TlsProxyFailed if the program is missing."""
    local = "[::1]" if settings.host == "::1" else "127.0.0.1"
    options = TlsOptions(
        domain=settings.domain,
        permission_url=f"http://{local}:{settings.port}{PERMISSION_PATH}",
        backend=_BACKEND,
        public_port=settings.public_port,
        http_port=listeners.http.getsockname()[1],
        acme_url=settings.acme_url,
        email=settings.tls_email,
        acme_ca=settings.acme_ca,
        certificate=settings.tls_certificate,
        key=settings.tls_key,
        trusted_proxies=settings.trusted_proxies,
    )
    return CaddyProxy(find_caddy(settings.caddy), proxy_socket(settings).parent, options, listeners)


def build_certificate_checker(core: CoreServices, proxy: TlsProxy | None) -> CertificateChecker | None:
    """Return the check of certificates, of our own proxy or of the operator's; None without TLS."""
    settings = core.settings
    if settings.public_scheme == "http":
        return None
    authorities = [path for path in (settings.acme_ca, settings.ca_file) if path]
    if proxy is None:
        # The operator's proxy may be on this machine, so its own public addresses are admitted.
        dialer = PublicDialer(core.network.dialer.policy, core.network.resolver, is_own=lambda _: False)
        return CertificateChecker(
            lambda name: dialer.dial("certificates", HostPort(name, settings.public_port)), authorities
        )
    host = "127.0.0.1" if settings.tls_host in {"::", "0.0.0.0"} else settings.tls_host  # noqa: S104 - compared

    async def connect(_name: str) -> Stream:
        return await asyncio.open_connection(host, settings.tls_port)

    return CertificateChecker(connect, authorities, proxy)


@dataclass(frozen=True)
class DomainServices:
    domains: DomainService
    ownership: PeriodicTask
    tls_proxy: TlsProxy | None


def build_domain_services(core: CoreServices, dns: DnsResolver, tls_proxy: TlsProxy | None) -> DomainServices:
    """Build the services; `tls_proxy` serves the registered names."""
    checker = build_certificate_checker(core, tls_proxy)
    addresses, mirror = core.addresses, core.network.domains
    parent = addresses.agents_host if addresses.ports is None else None
    platform = PlatformNames(addresses.domain, parent, core.settings.reserved_words)
    domains = DomainService(core.db, mirror, dns, platform, None if checker is None else checker.check)
    if tls_proxy is not None:
        mirror.subscribe(partial(_follow_change, mirror, tls_proxy))
    check = partial(domains.check_ownership, _OWNERSHIP_INTERVAL)
    return DomainServices(domains, LeasedTask(core.db, "domain ownership", check, _OWNERSHIP_SECONDS), tls_proxy)


def _follow_change(domains: DomainMirror, proxy: TlsProxy, name: str) -> None:
    """Refuse handshakes for a name that leads nowhere any more, because its certificate is still valid."""
    if domains.get(name) is None:
        proxy.drop_name(name)
    else:
        proxy.restore_name(name)


async def start_domain_services(services: DomainServices, stack: AsyncExitStack) -> None:
    """Load the registered names, and check in the background who owns them; `stack` stops that."""
    stack.push_async_callback(services.domains.mirror.stop)
    await services.domains.mirror.start()
    stack.push_async_callback(services.ownership.stop)
    services.ownership.start(_OWNERSHIP_SECONDS)
