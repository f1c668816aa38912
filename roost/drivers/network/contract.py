"""The contract of the public network: sources of content by CID, and announcing our own content.

A source streams a CAR that is not trusted: the receiver verifies every block and completeness. Announcing is a separate
ability that not all networks have.
"""

import ipaddress
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Sequence

from roost.core.problem import InvalidInput, NotFound, Problem, ServiceUnavailable

HOST_LIMIT = 512
_HOST = re.compile(
    r"/(ip4|ip6|dns|dns4|dns6|dnsaddr)/([A-Za-z0-9._:-]{1,253})(?:/(tcp|udp)/([0-9]{1,5}))?((?:/[^/\s]+)*)"
)
_PEER = re.compile(r"/p2p/[A-Za-z0-9]{1,128}")
_SCHEMES = {"/http": "http", "/https": "https", "/tls/http": "https"}


class ContentNotAtSource(NotFound):
    """The source does not have or does not provide the content."""

    message = "The source does not have the content"


class SourceFailed(ServiceUnavailable):
    """The source could not be reached, or its answer ended early."""

    message = "The source could not be read"


class NetworkRefused(Problem):
    """The network rejected the operation; the message is its own."""

    message = "The network refused"


class InvalidHostNode(InvalidInput):
    message = "A host node must be a multiaddr"


class ContentSource(ABC):
    """A source that may have content; `name` is for the log."""

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    def car(self, cid: str) -> AsyncGenerator[bytes]:
        """Yield the bytes of an unverified CAR of the whole content. Close the generator to stop early.

        Raises ContentNotAtSource, SourceFailed.
        """


class PublicNetwork(ABC):
    @abstractmethod
    def sources(self, hosts: Sequence[str] = ()) -> Sequence[ContentSource]:
        """Return the sources to ask, in order. hosts: multiaddrs of likely sources, validated by `http_origin`."""


class NetworkAnnouncer(ABC):
    """Ability to announce public content, by CIDs of version 1.

    Methods are idempotent and can be repeated after an interruption. They raise SourceFailed if the network cannot be
    reached, and NetworkRefused if it rejects the operation.
    """

    @abstractmethod
    async def has(self, cid: str) -> bool:
        """Return whether the content is announced."""

    @abstractmethod
    async def announce(self, cid: str, car: Callable[[], AsyncGenerator[bytes]]) -> None:
        """Provide and announce content. `car` opens the CAR of the whole content, if the network needs it.

        Errors of reading the CAR are passed on; then nothing is announced.
        """

    @abstractmethod
    async def withdraw(self, cid: str) -> None:
        """Stop providing content, if it is announced."""

    @abstractmethod
    async def addresses(self) -> Sequence[str]:
        """Return the multiaddrs at which others can connect to our node; empty while it cannot be reached."""


def http_origin(host: str) -> str | None:
    """Return the HTTP origin of a multiaddr, None for another protocol. Raises InvalidHostNode."""
    if len(host) <= HOST_LIMIT and _PEER.fullmatch(host):
        return None
    found = _HOST.fullmatch(host) if len(host) <= HOST_LIMIT else None
    if found is None or not _is_address(found[1], found[2]) or int(found[4] or 0) > 65535:
        raise InvalidHostNode
    kind, name, transport, port, rest = found.groups()
    scheme = _SCHEMES.get(rest)
    if scheme is None or transport != "tcp" or kind == "dnsaddr":
        return None
    return f"{scheme}://{f'[{name}]' if kind == 'ip6' else name}:{port}"


def _is_address(kind: str, name: str) -> bool:
    """Return whether an IP address is valid; the resolver checks names."""
    if not kind.startswith("ip"):
        return ":" not in name
    try:
        return ipaddress.ip_address(name).version == int(kind[2:])
    except ValueError:
        return False
