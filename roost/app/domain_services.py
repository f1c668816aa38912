"""Services of domains: the names that tenants registered, for both APIs and the edge."""

from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from roost.app.core_services import CoreServices
from roost.app.tls_services import build_certificate_checker
from roost.core.periodic import PeriodicTask
from roost.domain_names.service import DomainMirror, DomainService, PlatformNames
from roost.drivers.dns.contract import DnsResolver
from roost.drivers.tls_proxy.contract import TlsProxy

_OWNERSHIP_INTERVAL = timedelta(hours=1)
_OWNERSHIP_SECONDS = 600.0


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
    return DomainServices(domains, PeriodicTask("domain ownership", check, _OWNERSHIP_SECONDS), tls_proxy)


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
