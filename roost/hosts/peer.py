"""Who is at the other end: the address of the client, seen through the proxies that the operator trusts. Pure."""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

Network = IPv4Network | IPv6Network


def client_address(peer: str, forwarded_for: str, trusted: Sequence[Network]) -> str:
    """The rightmost address of the chain that is no trusted proxy.

    peer: the address at the other end of the connection. forwarded_for: its `X-Forwarded-For`, believed only as far
    as trusted proxies wrote it; the first thing that is no address ends the walk.
    """
    address = peer
    hops = forwarded_for.split(",") if forwarded_for else []
    while _is_trusted(address, trusted) and hops:
        hop = hops.pop().strip()
        if _parsed(hop) is None:
            break
        address = hop
    return address


def _is_trusted(address: str, trusted: Sequence[Network]) -> bool:
    parsed = _parsed(address) if trusted else None
    return parsed is not None and any(parsed in network for network in trusted)


def _parsed(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None
