"""Look-ups by dnspython, through name servers of the settings or those of the system."""

from collections.abc import Sequence
from typing import cast

import dns.asyncresolver
import dns.exception
import dns.name
import dns.resolver
from dns.rdtypes.ANY.TXT import TXT

from roost.drivers.dns.contract import DnsResolver, DnsUnavailable

LIFETIME_SECONDS = 5.0
_RECORDS_LIMIT = 100
_MISSING = (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer)


class DnspythonResolver(DnsResolver):
    """Nothing is kept: a record that was just set is found, and one that was removed is not."""

    def __init__(self, servers: Sequence[tuple[str, int]] = ()) -> None:
        """`servers` are addresses and ports of name servers; those of the system without any."""
        self._resolver = dns.asyncresolver.Resolver(configure=not servers)
        if servers:
            self._resolver.nameservers = [address for address, _ in servers]
            self._resolver.nameserver_ports = dict(servers)
        self._resolver.lifetime = LIFETIME_SECONDS

    async def find_texts(self, name: str) -> Sequence[str]:
        try:
            answer = await self._resolver.resolve(name, "TXT", search=False)
        except _MISSING:
            return ()
        except dns.exception.DNSException:
            raise DnsUnavailable(retry_after=LIFETIME_SECONDS) from None
        if answer.canonical_name != dns.name.from_text(name):
            return ()  # the owner of a wildcard alias's target could prove any name below the wildcard
        records = [cast("TXT", record) for record in answer][:_RECORDS_LIMIT]
        return [b"".join(record.strings).decode("latin-1") for record in records]
