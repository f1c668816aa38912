"""Rules of storage gateways: names, access controls and plugins. Pure.

A gateway without access controls is restricted: it serves its tenant's public content to all clients. With access
controls it serves all public content to the clients that a control admits.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum, StrEnum
from hmac import compare_digest
from ipaddress import IPv6Network, ip_network
from urllib.parse import urlsplit

from roost.core.problem import AccessDenied, InvalidInput, NotFound, ResourceConflict
from roost.domain_names import names
from roost.domain_names.errors import InvalidDomain
from roost.net.addresses import Address, parse_address


class GatewayNotFound(NotFound):
    """The gateway does not exist or belongs to another tenant; the response does not say which."""

    message = "Gateway not found"


class InvalidGatewayDomain(InvalidInput):
    message = "Invalid domain"


class GatewayDomainTaken(ResourceConflict):
    message = "Domain is not available"


class GatewayLimitReached(AccessDenied):
    message = "Gateway limit reached"


class InvalidAccessControl(InvalidInput):
    message = "Invalid access control"


class AccessControlLimitReached(AccessDenied):
    message = "Access control limit reached"


class AccessControlNotFound(NotFound):
    message = "Access control not found"


class PluginNotFound(NotFound):
    """The plugin does not exist or is not installed."""

    message = "Plugin not found"


GATEWAY_LIMIT = 20
CONTROL_LIMIT = 100
"""Maximum controls of each kind."""
PAGE_DEFAULT, PAGE_LIMIT = 10, 100
TOKEN_PREFIX = "rgw"  # noqa: S105 - the prefix of tokens

_HOST = re.compile(
    r"(?:\*\.)?(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", re.ASCII
)
_HOST_LENGTH_LIMIT = 253
_MAPPED_PREFIX_BITS = 96  # bits before the IPv4 address in an IPv4-mapped IPv6 address
_ABBREVIATION_LENGTH = 12


class Plugin(IntEnum):
    """A plugin; the numbers are the ids in the API."""

    CONTENT_ADDRESSABLE = 1
    HOT_SWAPS = 2


class AccessControlKind(StrEnum):
    TOKEN = "access_tokens"  # noqa: S105 - the API's name of the kind
    ADDRESS = "ips"
    HOST = "hosts"


@dataclass(frozen=True)
class AccessControl:
    """A rule that admits clients; `value` is an address range, a host or the beginning of a token.

    proof: the digest of a token; the token itself is not stored.
    """

    id: str
    kind: AccessControlKind
    value: str
    created_at: datetime
    proof: bytes | None = None


@dataclass(frozen=True)
class StorageGateway:
    """A gateway at `{domain}.gateways.D`."""

    id: str
    tenant_id: str
    domain: str
    created_at: datetime
    controls: Sequence[AccessControl] = ()
    plugins: frozenset[Plugin] = frozenset()

    @property
    def is_restricted(self) -> bool:
        """Whether the gateway serves only its tenant's content."""
        return not self.controls


def is_request_admitted(gateway: StorageGateway, token: str | None, ip: str | None, origin: str | None) -> bool:
    """Return whether the gateway is restricted or one of its controls admits the client.

    origin: the `Origin` or `Referer` header. ip: the client's address.
    """
    if gateway.is_restricted:
        return True
    proof = None if token is None else hash_token(token)
    address, host = parse_address(ip or ""), _host_of(origin)
    return any(_matches(control, proof, address, host) for control in gateway.controls)


def hash_token(token: str) -> bytes:
    """Return the stored digest of a token; 256 random bits need no salt."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def abbreviate_token(token: str) -> str:
    """Return the beginning of a token, which lists show."""
    return f"{token[:_ABBREVIATION_LENGTH]}…"


def parse_label(text: str) -> str:
    """Parse a DNS label that can be a gateway's name, to lower case. Raises InvalidGatewayDomain."""
    try:
        return names.parse_subdomain(text, (), "domain")
    except InvalidDomain as problem:
        raise InvalidGatewayDomain(problem.message) from None


def parse_host(text: str) -> str:
    """Parse a host name, `*.name` for its subdomains, or an origin. Raises InvalidAccessControl."""
    host = text.strip().lower()
    host = (_host_of(host) or "") if "://" in host else host.rstrip(".")
    if len(host) > _HOST_LENGTH_LIMIT or _HOST.fullmatch(host) is None:
        raise InvalidAccessControl("host must be a host name")
    return host


def parse_ip_range(text: str) -> str:
    """Parse an address or a CIDR range. Raises InvalidAccessControl."""
    try:
        network = ip_network(text.strip(), strict=False)
    except ValueError:
        network = None
    if network is None or "%" in text:  # zone ids are local to one machine
        raise InvalidAccessControl("ip must be an address or a range in CIDR form")
    mapped = network.network_address.ipv4_mapped if isinstance(network, IPv6Network) else None
    if mapped is not None:  # clients' addresses are unmapped, too; a shorter prefix leaves no mapped address
        network = ip_network((mapped, network.prefixlen - _MAPPED_PREFIX_BITS))
    return str(network.network_address) if network.num_addresses == 1 else str(network)


def _matches(control: AccessControl, proof: bytes | None, address: Address | None, host: str | None) -> bool:
    match control.kind:
        case AccessControlKind.TOKEN:
            return proof is not None and control.proof is not None and compare_digest(proof, control.proof)
        case AccessControlKind.ADDRESS:
            return address is not None and address in ip_network(control.value)
        case AccessControlKind.HOST:
            if host is None:
                return False
            return host.endswith(control.value[1:]) if control.value.startswith("*.") else host == control.value


def _host_of(origin: str | None) -> str | None:
    try:
        return urlsplit(origin or "").hostname
    except ValueError:
        return None
