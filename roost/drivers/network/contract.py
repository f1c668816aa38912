"""The contract of the public network: sources that are asked for content by its CID, and whom others ask for ours.

A source hands over a CAR as it comes, and nothing of it is to be believed: whoever keeps it checks every block, and
that it is whole. To tell others what is here is an ability of its own, which not all networks have.
"""

import ipaddress
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Sequence

from roost.core.problem import Problem, ProblemKind

HOST_LIMIT = 512
_HOST = re.compile(
    r"/(ip4|ip6|dns|dns4|dns6|dnsaddr)/([A-Za-z0-9._:-]{1,253})(?:/(tcp|udp)/([0-9]{1,5}))?((?:/[^/\s]+)*)"
)
_PEER = re.compile(r"/p2p/[A-Za-z0-9]{1,128}")
_SCHEMES = {"/http": "http", "/https": "https", "/tls/http": "https"}


class ContentNotAtSource(Problem):
    """The source does not have it, or does not give it."""

    kind = ProblemKind.MISSING
    message = "The source does not have the content"


class SourceFailed(Problem):
    """The source could not be reached, or broke off."""

    kind = ProblemKind.UNAVAILABLE
    message = "The source could not be read"


class NetworkRefused(Problem):
    """The network was reached and does not do it; the message is in its words."""

    message = "The network refused"


class InvalidHostNode(Problem):
    kind = ProblemKind.INVALID
    message = "A host node must be a multiaddr"


class ContentSource(ABC):
    """One place that may have content. `name` is for the log."""

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    def car(self, cid: str) -> AsyncGenerator[bytes, None]:
        """The bytes of a CAR that claims to be all of that content, in pieces. Close it when it is not wanted further.

        Raises NotThere, SourceFailed.
        """


class PublicNetwork(ABC):
    @abstractmethod
    def sources(self, hosts: Sequence[str] = ()) -> Sequence[ContentSource]:
        """Whom to ask, in this order. `hosts` are multiaddrs, checked by `origin`, that somebody says have it."""


class NetworkAnnouncer(ABC):
    """The ability to tell others what is here. CIDs are canonical, of version 1, and what they name is for everybody.

    Each verb can be done twice, and again after it was cut off. They raise SourceFailed where the network cannot be
    reached and Refused where it does not do it.
    """

    @abstractmethod
    async def has(self, cid: str) -> bool:
        """Whether it was announced, and not withdrawn since."""

    @abstractmethod
    async def announce(self, cid: str, car: Callable[[], AsyncGenerator[bytes, None]]) -> None:
        """Give others what a CID names, and tell them so. `car` makes the CAR of all of it, if that is wanted.

        Raises what reading the CAR raises; then nothing is announced.
        """

    @abstractmethod
    async def withdraw(self, cid: str) -> None:
        """Keep it for others no longer. One that was never announced is withdrawn already."""

    @abstractmethod
    async def addresses(self) -> Sequence[str]:
        """The multiaddrs of who announces and fetches, for others to connect to; none while it cannot be reached."""


def origin(host: str) -> str | None:
    """The HTTP origin that a multiaddr names; None for one that speaks something else. Raises BadHost."""
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
    """Numbers have to be numbers; names are for the resolver to judge."""
    if not kind.startswith("ip"):
        return ":" not in name
    try:
        return ipaddress.ip_address(name).version == int(kind[2:])
    except ValueError:
        return False
