"""Services of domains: the names that tenants registered, for both APIs and the edge."""

from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from roost.app.core_services import CoreServices
from roost.core.periodic import PeriodicTask
from roost.domains.service import DomainService, PlatformNames
from roost.drivers.dns.contract import DnsResolver

_OWNERSHIP_INTERVAL = timedelta(hours=1)
_OWNERSHIP_SECONDS = 600.0


@dataclass(frozen=True)
class DomainServices:
    domains: DomainService
    ownership: PeriodicTask


def build_domain_services(core: CoreServices, dns: DnsResolver) -> DomainServices:
    """Build the services; the addresses of the server then include registered names."""
    platform = PlatformNames(core.addresses.domain, core.addresses.agents_host, core.settings.reserved_words)
    domains = DomainService(core.db, dns, platform)
    core.addresses.use_domains(domains.find)
    check = partial(domains.check_ownership, _OWNERSHIP_INTERVAL)
    return DomainServices(domains, PeriodicTask("domain ownership", check, _OWNERSHIP_SECONDS))


async def start_domain_services(services: DomainServices, stack: AsyncExitStack) -> None:
    """Load the registered names, and check in the background who owns them; `stack` stops that."""
    stack.push_async_callback(services.domains.mirror.stop)
    await services.domains.mirror.start()
    stack.push_async_callback(services.ownership.stop)
    services.ownership.start(_OWNERSHIP_SECONDS)
