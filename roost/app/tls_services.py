"""TLS in front of the server: Caddy as a child of it, and what decides and checks who gets a certificate."""

import asyncio
from pathlib import Path

from roost.app.core_services import CoreServices
from roost.core.machine.unix_socket import Stream
from roost.drivers.tls_proxy.caddy import CaddyProxy, find_caddy, read_caddy_version
from roost.drivers.tls_proxy.contract import TlsListeners, TlsOptions, TlsProxy
from roost.http.server.server import open_tls_listeners
from roost.http.tls.certificate_check import CertificateChecker
from roost.http.tls.certificate_names import PERMISSION_PATH
from roost.net.dialer import PublicDialer
from roost.net.host_port import HostPort
from roost.settings import Settings

_BACKEND = "roost.sock"


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


def tls_folder(settings: Settings) -> Path:
    return settings.data / "tls"


def proxy_socket(settings: Settings) -> Path:
    """Return the path at which the server listens for its own TLS proxy."""
    return tls_folder(settings) / _BACKEND


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
    return CaddyProxy(find_caddy(settings.caddy), tls_folder(settings), options, listeners)


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
