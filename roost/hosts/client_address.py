"""Who is at the other end: the address of the client, seen through the proxies that the operator trusts. Pure."""

from collections.abc import Sequence
from functools import lru_cache

from roost.net.addresses import Network, parse_address

_DUMMY = "192.0.0.8"  # RFC 7600


def client_address(peer: str, forwarded_for: str, trusted: Sequence[Network]) -> str:
    """Return the rightmost address of the chain that is no trusted proxy.

    peer: the address at the other end of the connection. forwarded_for: its `X-Forwarded-For`, believed only as far
    as trusted proxies wrote it; the first thing that is no address ends the walk.
    """
    address = peer
    hops = forwarded_for.split(",") if forwarded_for else []
    while _is_trusted(address, trusted) and hops:
        hop = hops.pop().strip()
        if parse_address(hop) is None:
            break
        address = hop
    return address


@lru_cache(maxsize=4096)
def forwarded_client_ip(address: str) -> str:
    """Return the client's address for a gateway.

    What is loopback to us, or has no address, would mean the gateway's own container there, which it trusts.
    It gets the dummy address instead.
    """
    parsed = parse_address(address)
    return _DUMMY if parsed is None or parsed.is_loopback or parsed.is_unspecified else str(parsed)


def _is_trusted(address: str, trusted: Sequence[Network]) -> bool:
    parsed = parse_address(address) if trusted else None
    return parsed is not None and any(parsed in network for network in trusted)
