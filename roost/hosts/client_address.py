"""Determine the address of a client behind trusted proxies. Pure."""

from collections.abc import Sequence
from functools import lru_cache

from roost.net.addresses import Network, parse_address

OWN_PROXY = "unix:"
"""The peer of connections over the server's own Unix socket, which only its own TLS proxy opens."""
_DUMMY = "192.0.0.8"  # RFC 7600


def client_address(peer: str, forwarded_for: str, trusted: Sequence[Network]) -> str:
    """Return the rightmost address of the chain that is no trusted proxy.

    peer: the remote address of the connection. forwarded_for: `X-Forwarded-For`, trusted only as far as trusted
    proxies wrote it, and up to the first invalid address.
    """
    address = peer
    hops = forwarded_for.split(",") if forwarded_for else []
    while is_trusted(address, trusted) and hops:
        hop = hops.pop().strip()
        if parse_address(hop) is None:
            break
        address = hop
    return address


@lru_cache(maxsize=4096)
def forwarded_client_ip(address: str) -> str:
    """Return the client's address for a gateway; a dummy for loopback, unspecified or invalid addresses.

    A gateway would take a loopback address for its own container, which it trusts.
    """
    parsed = parse_address(address)
    return _DUMMY if parsed is None or parsed.is_loopback or parsed.is_unspecified else str(parsed)


def is_trusted(address: str, trusted: Sequence[Network]) -> bool:
    """Return whether the address belongs to a trusted proxy."""
    if address == OWN_PROXY:
        return True
    parsed = parse_address(address) if trusted else None
    return parsed is not None and any(parsed in network for network in trusted)
