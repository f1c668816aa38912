"""Look-ups by dnspython, through name servers of the settings or those of the system."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, cast

from roost.drivers.dns.contract import DnsResolver, DnsUnavailable

if TYPE_CHECKING:
    from dns.asyncresolver import Resolver
    from dns.rdtypes.ANY.TXT import TXT

LIFETIME_SECONDS = 5.0
_RECORDS_LIMIT = 100


class DnspythonResolver(DnsResolver):
    """Nothing is kept: a record that was just set is found, and one that was removed is not."""

    def __init__(self, servers: Sequence[tuple[str, int]] = ()) -> None:
        """`servers` are addresses and ports of name servers; those of the system without any."""
        self._servers = servers

    @cached_property
    def _resolver(self) -> "Resolver":
        from dns.asyncresolver import Resolver  # takes 3 MB of memory

        resolver = Resolver(configure=not self._servers)
        if self._servers:
            resolver.nameservers = [address for address, _ in self._servers]
            resolver.nameserver_ports = dict(self._servers)
        resolver.lifetime = LIFETIME_SECONDS
        return resolver

    async def find_texts(self, name: str) -> Sequence[str]:
        import dns.exception
        import dns.name
        import dns.resolver

        try:
            answer = await self._resolver.resolve(name, "TXT", search=False)
        except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
            return ()
        except dns.exception.DNSException:
            raise DnsUnavailable(retry_after=LIFETIME_SECONDS) from None
        if answer.canonical_name != dns.name.from_text(name):
            return ()  # the owner of a wildcard alias's target could prove any name below the wildcard
        records = [cast("TXT", record) for record in answer][:_RECORDS_LIMIT]
        return [b"".join(record.strings).decode("latin-1") for record in records]
