"""Classify IP addresses: public, private, loopback. Nothing is resolved here.

An address is public when none of the blocks below contains it. The table follows the IANA special-purpose registries
(RFC 6890 and its updates) instead of `ipaddress.is_global`, which differs between Python versions and includes
multicast and translation prefixes. A doubtful block is not public.
"""

from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_PRIVATE_V4 = tuple(
    IPv4Network(block)
    for block in (
        "0.0.0.0/8",  # "this network"; 0.0.0.0 itself reaches loopback
        "10.0.0.0/8",  # private
        "28.77.0.0/16",  # stands for names inside a container; outside of one it means nothing
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
_PRIVATE_V6 = tuple(
    IPv6Network(block)
    for block in (
        "2001::/23",  # protocol assignments; Teredo, which embeds any IPv4 address
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4, which embeds any IPv4 address
        "3fff::/20",  # documentation
    )
)
_NAT64 = IPv6Network("64:ff9b::/96")  # how a host without IPv4 reaches it: as good as the address inside


def parse_address(text: str) -> Address | None:
    """Return the address, IPv4-mapped IPv6 as IPv4; None when the text is no address."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


def embedded_address(address: Address) -> Address:
    """Return the IPv4 address inside an IPv4-mapped or NAT64 one, else the address itself."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address


def is_public(address: Address) -> bool:
    """Tell whether the address is on the public internet, looking through IPv4-mapped and NAT64 forms."""
    inner = embedded_address(address)
    if isinstance(inner, IPv4Address):
        return not any(inner in block for block in _PRIVATE_V4)
    return inner in _GLOBAL_V6 and not any(inner in block for block in _PRIVATE_V6)


@lru_cache(maxsize=4096)
def is_loopback(text: str) -> bool:
    """Tell whether the text is a loopback address. A name is none: it can resolve to anything."""
    address = parse_address(text)
    return address is not None and address.is_loopback


@lru_cache(maxsize=4096)
def peer_network(text: str) -> str:
    """Return what one host on the internet has to itself: an IPv4 address, or the /64 of an IPv6 address."""
    address = parse_address(text)
    return str(IPv6Network((address, 64), strict=False)) if isinstance(address, IPv6Address) else str(address or text)
