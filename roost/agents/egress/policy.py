"""Which hosts, ports and addresses an agent may reach: pure rules over parsed values, no name is resolved here.

An address is public when it is in none of the blocks below. The table is our own, taken from the IANA special-purpose
registries (RFC 6890 and its updates), because what `ipaddress` calls global differs between Python versions and
includes multicast and translation prefixes. When in doubt a block is refused.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
Place = tuple[Address, int | None]
"""An address, and the port there when it is another one than was asked for."""

_REFUSED_V4 = tuple(
    IPv4Network(block)
    for block in (
        "0.0.0.0/8",  # "this network"; 0.0.0.0 itself reaches loopback
        "10.0.0.0/8",  # private
        "28.77.0.0/16",  # stands for names inside a box: who asks for it here has taken a stand-in for the host
        "100.64.0.0/10",  # shared by carriers; some clouds put their metadata service here
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # a public address that one large cloud uses for its platform service
        "169.254.0.0/16",  # link-local, the metadata services among it
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments; metadata of another cloud
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarking
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
    )
)
_GLOBAL_V6 = IPv6Network("2000::/3")  # all that IANA gives out; loopback, fc00::/7, fe80::/10 ... are outside
_REFUSED_V6 = tuple(
    IPv6Network(block)
    for block in (
        "2001::/23",  # protocol assignments; Teredo, which embeds any IPv4 address
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4, which embeds any IPv4 address
        "3fff::/20",  # documentation
    )
)
_NAT64 = IPv6Network("64:ff9b::/96")  # how a host without IPv4 reaches it: as good as the address inside


def is_public(address: Address) -> bool:
    """Whether the address is on the public internet, looking through IPv4-mapped and NAT64 forms."""
    inner = _plain(address)
    if isinstance(inner, IPv4Address):
        return not any(inner in block for block in _REFUSED_V4)
    return inner in _GLOBAL_V6 and not any(inner in block for block in _REFUSED_V6)


@dataclass(frozen=True)
class EgressPolicy:
    """What an operator may change.

    allow_private: networks that are reachable although they are not public. For tests, and for an internal network
        that is opened on purpose.
    deny_hosts, allow_hosts: a name stands for itself and all names below it; an IP address for itself. With
        `allow_hosts` nothing else is reachable. A denied name does not keep an agent from the address behind it.
    deny_ports: 25 alone by default: mail between servers, of use to spam only. Submission (465, 587) is open.
    hosts: canonical names that lead to a place of the operator's choice instead of to what DNS says; exactly these
        names, and the address must be admitted like any other. `deny_ports` judges the port that was asked for.
    """

    allow_private: Sequence[Network] = ()
    deny_hosts: Sequence[str] = ()
    allow_hosts: Sequence[str] | None = None
    deny_ports: frozenset[int] = frozenset({25})
    hosts: Mapping[str, Place] = field(default_factory=dict[str, Place])

    def admits_host(self, host: str) -> bool:
        """`host` is canonical: lower case, no trailing dot."""
        if _listed(host, self.deny_hosts):
            return False
        return self.allow_hosts is None or _listed(host, self.allow_hosts)

    def admits_port(self, port: int) -> bool:
        return port not in self.deny_ports

    def admits_address(self, address: Address) -> bool:
        return is_public(address) or self.opens(address)

    def opens(self, address: Address) -> bool:
        """Whether the operator opened the network of this address on purpose."""
        inner = _plain(address)
        return any(inner in network for network in self.allow_private)


def _plain(address: Address) -> Address:
    """The IPv4 address inside an IPv4-mapped or NAT64 one, else the address as it is."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address


def _listed(host: str, patterns: Sequence[str]) -> bool:
    return any(host == name or host.endswith(f".{name}") for name in map(_canonical, patterns))


def _canonical(name: str) -> str:
    return name.lower().removesuffix(".")
