"""Name servers in memory, for tests."""

from collections.abc import Sequence

from roost.drivers.dns.contract import DnsResolver, DnsUnavailable


class FakeDns(DnsResolver):
    """`texts` are the records by name; `is_available` tells whether the name servers answer."""

    def __init__(self) -> None:
        self.texts: dict[str, list[str]] = {}
        self.is_available = True

    async def find_texts(self, name: str) -> Sequence[str]:
        if not self.is_available:
            raise DnsUnavailable(retry_after=5)
        return self.texts.get(name.lower(), ())
