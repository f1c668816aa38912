"""Parse host and port out of an untrusted authority (RFC 3986 section 3.2).

A host that any C library would read as an IPv4 address is one here too (`127.1`, `0x7f000001`, `2130706433`,
`0177.0.0.1`), so that no spelling of an address passes as a name. Userinfo, zone ids and non-ASCII are refused.
"""

import re
import socket
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address

from roost.net.addresses import Address
from roost.net.errors import InvalidTarget

_AUTHORITY = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]{1,254}))(?::([0-9]{1,5}))?")
_LABEL = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,62})")
_NUMBER = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*")


@dataclass(frozen=True)
class HostPort:
    """`host` is canonical: a lower-case name without trailing dot, or the usual form of `address`."""

    host: str
    port: int
    address: Address | None = None


def parse_host_port(authority: str, default_port: int | None = None) -> HostPort:
    """Parse `host:port`. Raises InvalidTarget."""
    found = _AUTHORITY.fullmatch(authority)
    if found is None:
        raise InvalidTarget
    bracketed, name, digits = found.groups()
    port = int(digits) if digits else default_port
    if port is None or not 1 <= port <= 65535:
        raise InvalidTarget("The port is missing or not an integer between 1 and 65535")
    address = _parse_ipv6(bracketed) if bracketed else _parse_ipv4(name.removesuffix("."))
    return HostPort(name.removesuffix(".").lower() if address is None else str(address), port, address)


def _parse_ipv6(text: str) -> IPv6Address:
    try:
        return IPv6Address(text)
    except AddressValueError:
        raise InvalidTarget("The host in brackets is not an IPv6 address") from None


def _parse_ipv4(name: str) -> IPv4Address | None:
    """Return the IPv4 address that the operating system would read out of the name; None for a real name."""
    labels = name.split(".")
    if len(name) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise InvalidTarget("The host is not a DNS name")
    if not _NUMBER.fullmatch(labels[-1]):
        return None
    try:
        return IPv4Address(socket.inet_aton(name))
    except OSError:
        raise InvalidTarget("The host ends in a number and is not an IPv4 address") from None
