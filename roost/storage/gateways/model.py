"""A storage gateway: its name under the domain, the controls of who may use it, its plugins. All rules are pure.

Without a control a gateway is restricted: everybody may ask it, and it serves what its tenant has on the public
network. With controls it serves everything public, to those whom one of them lets in.
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

from roost.net.addresses import Address, parse_address
from roost.storage.gateways.errors import InvalidAccessControl, InvalidGatewayDomain

GATEWAY_LIMIT = 20
CONTROL_LIMIT = 100
"""Of each kind."""
PAGE_DEFAULT, PAGE_LIMIT = 10, 100
TOKEN_PREFIX = "rgw"  # noqa: S105 - the sign that tokens start with

_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{1,61}[a-z0-9])", re.ASCII)
_HOST = re.compile(
    r"(?:\*\.)?(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", re.ASCII
)
_LONGEST_HOST = 253
_MAPPED = 96  # bits before an IPv4 address in an IPv6 one
_SHOWN_OF_A_TOKEN = 12
_RESERVED = frozenset(
    {
        *("admin", "administrator", "agents", "api", "app", "auth", "autoconfig", "autodiscover", "billing", "blog"),
        *("cdn", "console", "dashboard", "dev", "docs", "example", "ftp", "gateway", "gateways", "help", "hostmaster"),
        *("imap", "internal", "ipfs", "ipns", "localhost", "login", "mail", "metrics", "news", "postmaster", "pop"),
        *("proxy", "public", "root", "secure", "security", "signin", "smtp", "ssl", "staging", "static", "status"),
        *("support", "system", "test", "tls", "uploads", "webmail", "webmaster", "wpad", "www"),
    }
)
_BRANDS = (
    *("amazon", "anthropic", "binance", "coinbase", "facebook", "github", "google", "hermes", "instagram", "ledger"),
    *("metamask", "microsoft", "netflix", "openai", "openclaw", "opensea", "paypal", "pinata", "roost", "telegram"),
    *("trezor", "trustwallet", "uniswap", "walletconnect", "whatsapp"),
)


class Plugin(IntEnum):
    """What can be installed on a gateway; the numbers are those that clients know."""

    CONTENT_ADDRESSABLE = 1
    HOT_SWAPS = 2


@dataclass(frozen=True)
class PluginInfo:
    """How the marketplace tells of a plugin."""

    plugin: Plugin
    name: str
    description: str
    tags: Sequence[str]


MARKETPLACE: Sequence[PluginInfo] = (
    PluginInfo(
        Plugin.CONTENT_ADDRESSABLE,
        "Content Addressable Attestation",
        "Serves the wallet signature of a CID with it, in the header pinata-signature.",
        ("verifiability", "security"),
    ),
    PluginInfo(Plugin.HOT_SWAPS, "Hot Swaps", "Serves another CID in place of one that was swapped.", ("files",)),
)


class AccessControlKind(StrEnum):
    TOKEN = "access_tokens"  # noqa: S105 - what clients call the kind
    ADDRESS = "ips"
    HOST = "hosts"


@dataclass(frozen=True)
class AccessControl:
    """One way to be let in. `value` is what is shown: an address range, a host, how a token begins.

    proof: the digest of a token; the token itself is not kept.
    """

    id: str
    kind: AccessControlKind
    value: str
    created_at: datetime
    proof: bytes | None = None


@dataclass(frozen=True)
class StorageGateway:
    """`domain` is its label: the address is `{domain}.gateways.D`."""

    id: str
    tenant_id: str
    domain: str
    created_at: datetime
    controls: Sequence[AccessControl] = ()
    plugins: frozenset[Plugin] = frozenset()

    @property
    def is_restricted(self) -> bool:
        """Whether it serves its tenant's content only."""
        return not self.controls


def admits(gateway: StorageGateway, token: str | None, ip: str | None, origin: str | None) -> bool:
    """Whether a request may use the gateway: it has no controls, or one of them lets it in.

    origin: the `Origin` header or the `Referer`, as it came. ip: the client's address.
    """
    if gateway.is_restricted:
        return True
    proof = None if token is None else digest(token)
    address, host = parse_address(ip or ""), _host_of(origin)
    return any(_matches(control, proof, address, host) for control in gateway.controls)


def digest(token: str) -> bytes:
    """What is kept of a token of 256 random bits."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def shown(token: str) -> str:
    """What lists show of a token, for its owner to know which it is."""
    return f"{token[:_SHOWN_OF_A_TOKEN]}…"


def checked_label(given: str) -> str:
    """A DNS label that may be a gateway's name, in lower case. Raises InvalidDomain."""
    label = given.strip().lower()
    if _LABEL.fullmatch(label) is None:
        raise InvalidGatewayDomain(
            "domain must be 3 to 63 letters, digits or hyphens, with a letter or digit at both ends"
        )
    if label[2:4] == "--" or label in _RESERVED or any(brand in label for brand in _BRANDS):
        raise InvalidGatewayDomain("domain is reserved")
    return label


def checked_host(given: str) -> str:
    """A host name, also out of an origin, as `*.name` for all below it. Raises InvalidControl."""
    host = given.strip().lower()
    host = (_host_of(host) or "") if "://" in host else host.rstrip(".")
    if len(host) > _LONGEST_HOST or _HOST.fullmatch(host) is None:
        raise InvalidAccessControl("host must be a host name")
    return host


def checked_range(given: str) -> str:
    """An address, or a range in CIDR form. Raises InvalidControl."""
    try:
        found = ip_network(given.strip(), strict=False)
    except ValueError:
        found = None
    if found is None or "%" in given:  # what follows that sign is a name of one machine's own
        raise InvalidAccessControl("ip must be an address or a range in CIDR form")
    mapped = found.network_address.ipv4_mapped if isinstance(found, IPv6Network) else None
    if mapped is not None:  # as clients' addresses are looked at; a shorter prefix leaves no mapped address
        found = ip_network((mapped, found.prefixlen - _MAPPED))
    return str(found.network_address) if found.num_addresses == 1 else str(found)


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
