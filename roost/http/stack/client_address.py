"""Determine the address of a client behind trusted proxies. Pure."""

from collections.abc import Container, Sequence
from functools import lru_cache

from roost.net.addresses import Network, is_loopback, parse_address, peer_network

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


def is_local_program(peer: str, header_names: Container[str]) -> bool:
    """Return whether a program of this machine sends a request of its own.

    Anyone can write `Host: localhost`, also through a proxy on this machine; headers that a proxy adds reveal that.
    """
    is_forwarded = "x-forwarded-for" in header_names or "forwarded" in header_names or "via" in header_names
    return not is_forwarded and is_loopback(peer)


def limited_client(
    client: str, peer: str, header_names: Container[str], trusted: Sequence[Network], *, limits_loopback: bool
) -> str | None:
    """Return the network as which limits count a client; None for a program of this machine, unless `limits_loopback`.

    client: its `client_address`. One on loopback may be any client of a proxy on this machine that is not trusted.
    """
    if not limits_loopback and is_loopback(client):
        if is_local_program(peer, header_names):
            return None
        if "x-forwarded-for" in header_names and is_trusted(peer, trusted):
            return None
    return peer_network(client)


@lru_cache(maxsize=4096)
def forwarded_client_ip(address: str) -> str:
    """Return the client's address for a gateway; a dummy for loopback, unspecified or invalid addresses.

    A gateway would take a loopback address for its own container, which it trusts.
    """
    parsed = parse_address(address)
    return _DUMMY if parsed is None or parsed.is_loopback or parsed.is_unspecified else str(parsed)


def is_trusted(address: str, trusted: Sequence[Network]) -> bool:
    if address == OWN_PROXY:
        return True
    parsed = parse_address(address) if trusted else None
    return parsed is not None and any(parsed in network for network in trusted)
