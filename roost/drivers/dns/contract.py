"""Contract of look-ups in the DNS, which prove that a domain is its owner's."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from roost.core.problem import ServiceUnavailable


class DnsUnavailable(ServiceUnavailable):
    """No name server answered in time, or all of them failed. It says nothing about the name."""

    message = "The name servers do not answer"


class DnsResolver(ABC):
    @abstractmethod
    async def find_texts(self, name: str) -> Sequence[str]:
        """Return the TXT records of a name itself, not of an alias, each with its parts joined; none if it has none.

        Raises DnsUnavailable.
        """
