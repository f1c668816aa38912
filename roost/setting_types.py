"""Types of settings: how their texts are parsed, and what each may be. Pure."""

import ipaddress
import json
import re
from collections.abc import Callable, Mapping, Sequence
from ipaddress import IPv6Address
from pathlib import Path
from typing import Annotated, Any, cast
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field

from roost.core.payment_asset import PaymentAsset, PaymentNetwork
from roost.core.sensitive import Sensitive
from roost.net.addresses import Network, parse_address
from roost.net.errors import InvalidTarget
from roost.net.host_port import parse_host_port
from roost.net.policy import HostOverride

_DNS_PORT, _LAST_PORT = 53, 65535
_PORTS_LIMIT = 1000
_GIB = 1024**3
_MIN_BYTES = 64 * 1024**2
_UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": _GIB}
_SIZE = re.compile(r"([0-9]{1,19})(?:([KMG])i?)?", re.IGNORECASE | re.ASCII)
_HOST = re.compile(r"([a-z0-9._-]{1,253})=(?:\[([0-9a-f:.]+)\]|([0-9.]+))(?::([0-9]{1,5}))?")
_PAYMENT_ASSET = re.compile(
    r"(?:([a-z0-9][a-z0-9-]{0,31})@)?eip155:([1-9][0-9]{0,15})/(0x[0-9a-fA-F]{40})=([^/=]{1,64})/([^/=]{1,16})"
)
_AUTH_SECRET = re.compile(r"bearer:[!-~]+|basic:[^:\s]+:.+")
_DOMAIN = re.compile(r"(?=.{1,200}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*")


def _parse_integer(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,15}", text):
        raise ValueError("must be an integer of 0 or more")
    return int(text)


def _parse_size(text: str) -> int:
    found = _SIZE.fullmatch(text)
    size = int(found[1]) * _UNITS[(found[2] or "").upper()] if found else 0
    if size < _MIN_BYTES:
        raise ValueError("must be a number of bytes of at least 64M, like 2147483648, 2048M or 2G")
    return size


def _parse_capacity(text: str) -> int | None:
    return None if text.lower() == "none" else _parse_size(text)


def _parse_rate(text: str) -> int | None:
    rate = None if text.lower() == "none" else _parse_integer(text)
    if rate == 0:
        raise ValueError("must be a number of at least 1, or `none`")
    return rate


def _parse_domain(text: str) -> str:
    """Parse a DNS name or an IP address, which is returned as in URLs."""
    domain = text.lower().rstrip(".")
    if (address := parse_address(domain.strip("[]"))) is not None:
        return f"[{address}]" if isinstance(address, IPv6Address) else str(address)
    if not _DOMAIN.fullmatch(domain) or domain.rpartition(".")[2].isdecimal():  # browsers read a number as an address
        raise ValueError("must be a DNS name like example.com")
    return domain


def _parse_port_range(text: str) -> range:
    found = re.fullmatch(r"([0-9]{1,5})-([0-9]{1,5})", text)
    ports = range(int(found[1]), int(found[2]) + 1) if found else range(0)
    if not ports or ports[0] < 1 or ports[-1] > _LAST_PORT or len(ports) > _PORTS_LIMIT:
        raise ValueError(f"must be a range of at most {_PORTS_LIMIT} ports, like 9000-9099")
    return ports


def _parse_list(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",") if item.strip())


def _parse_ports(text: str) -> frozenset[int]:
    ports = frozenset(() if text.lower() == "none" else map(_parse_integer, _parse_list(text)))
    if not all(1 <= port <= 65535 for port in ports):
        raise ValueError("must be a list of ports between 1 and 65535, or `none`")
    return ports


def _parse_hosts(text: str) -> Mapping[str, HostOverride]:
    return dict(map(_parse_host, _parse_list(text.lower())))


def _parse_host(item: str) -> tuple[str, HostOverride]:
    """Parse `name=192.0.2.7`, `name=192.0.2.7:8443` or `name=[2001:db8::7]:8443`."""
    found = _HOST.fullmatch(item)
    if found is None or not 1 <= int(found[4] or 1) <= 65535:
        raise ValueError("must be a list of name=address or name=address:port")
    return found[1].removesuffix("."), (ipaddress.ip_address(found[2] or found[3]), int(found[4]) if found[4] else None)


def _parse_host_name(item: str) -> str:
    """Parse `example.org`, which names below it need no `*.` for, or an address; return it as in requests."""
    name = f"[{item.strip('[]')}]" if ":" in item else item.removeprefix("*.").removeprefix(".")
    try:
        return parse_host_port(name, default_port=1).host
    except InvalidTarget:
        raise ValueError("must be a list of host names in ASCII, like example.org") from None


def _parse_name_server(item: str) -> tuple[str, int]:
    """Parse `192.0.2.7`, `192.0.2.7:5353`, `2001:db8::7` or `[2001:db8::7]:5353`."""
    try:
        found = parse_host_port(f"[{item}]" if item.count(":") > 1 and "[" not in item else item, _DNS_PORT)
    except InvalidTarget:
        found = None
    if found is None or found.address is None:
        raise ValueError("must be a list of address or address:port")
    return str(found.address), found.port


def _parse_peer_address(text: str) -> str:
    """Parse `192.0.2.7:8643`, `[2001:db8::7]:8643` or `one.internal:8643`."""
    try:
        parse_host_port(text)
    except InvalidTarget:
        raise ValueError("must be host:port") from None
    return text


def _parse_model_servers(text: str) -> Mapping[str, int]:
    """Parse `ollama=11434,lmstudio=1234`, or `none`."""
    found = {} if text.lower() == "none" else dict(map(_parse_model_server, _parse_list(text)))
    if len(set(found.values())) < len(found):
        raise ValueError("must have another port for each server")
    return found


def _parse_model_server(item: str) -> tuple[str, int]:
    found = re.fullmatch(r"(ollama|lmstudio|llamacpp)=([0-9]{1,5})", item)
    if found is None or not 1 <= int(found[2]) <= _LAST_PORT:
        raise ValueError("must be `none`, or a list of ollama=PORT, lmstudio=PORT and llamacpp=PORT")
    return found[1], int(found[2])


def _parse_payment_asset(item: str) -> PaymentAsset:
    """Parse `eip155:137/0x3c49...=USD Coin/2` or `polygon@eip155:137/0x3c49...=USD Coin/2`."""
    found = _PAYMENT_ASSET.fullmatch(item)
    if found is None:
        raise ValueError("must be a list of eip155:CHAIN/0xTOKEN=NAME/VERSION or NETWORK@eip155:CHAIN/...")
    return PaymentAsset(PaymentNetwork(int(found[2]), found[1]), found[3], found[4], found[5])


def _parse_url(text: str) -> str:
    if not text.startswith(("http://", "https://")):
        raise ValueError("must be an http:// or https:// URL")
    return text.rstrip("/")


def _parse_protected_url(text: str) -> str:
    url = urlsplit(_parse_url(text))
    address = parse_address(url.hostname or "")
    is_loopback = url.hostname == "localhost" or (address is not None and address.is_loopback)
    if not url.hostname or (url.scheme != "https" and not is_loopback):
        raise ValueError("must be an https:// URL, or one of a loopback address")
    return _parse_url(text)


def _parse_flag(text: str) -> bool:
    if text.lower() not in {"true", "false"}:
        raise ValueError("must be true or false")
    return text.lower() == "true"


def parse_path(text: str | Path) -> Path:
    return Path(text).expanduser().resolve()


def _parse_kek(text: str) -> Sensitive[bytes]:
    if not re.fullmatch(r"[0-9a-fA-F]{64}", text):
        raise ValueError("must be 64 hexadecimal digits (32 bytes)")
    return Sensitive(bytes.fromhex(text))


def _parse_auth_secret(text: str) -> Sensitive[str]:
    if not _AUTH_SECRET.fullmatch(text):
        raise ValueError("must be `bearer:TOKEN` or `basic:USER:PASSWORD`")
    return Sensitive(text)


def _parse_token(text: str) -> Sensitive[str]:
    if not re.fullmatch(r"[!-~]{16,}", text):
        raise ValueError("must be at least 16 printable ASCII characters without spaces")
    return Sensitive(text)


def _parse_engine_images(text: str) -> Mapping[str, Sequence[str]]:
    """Parse `openclaw@2026.9.6,hermes@0.19.0`; the first version of an engine is its newest."""
    versions: dict[str, list[str]] = {}
    for item in _parse_list(text):
        engine, _, version = item.partition("@")
        if not engine or not version:
            raise ValueError("must be a list of engine@version")
        versions.setdefault(engine, []).append(version)
    return versions


def _parse_uid(text: str) -> int | None:
    uid = None if text.lower() == "none" else _parse_integer(text)
    if uid == 0:
        raise ValueError("must be a user without rights, or `none`")
    return uid


def _parse_labels(text: str) -> Mapping[str, str]:
    labels = json.loads(text or "{}")
    if not isinstance(labels, dict) or not all(isinstance(value, str) for value in cast("Any", labels).values()):
        raise ValueError("must be a JSON object of strings")
    return cast("Mapping[str, str]", labels)


def _parse_objects(text: str) -> Sequence[Mapping[str, Any]]:
    objects = json.loads(text or "[]")
    if not isinstance(objects, list) or not all(isinstance(one, dict) for one in cast("list[object]", objects)):
        raise ValueError("must be a JSON list of objects")
    return cast("Sequence[Mapping[str, Any]]", objects)


def _parse_blobs(text: str) -> str:
    if "://" in text and not text.startswith(("s3://", "gs://", "az://")):
        raise ValueError("must be a folder, or s3://, gs:// or az:// with a bucket")
    return text


def _list_of(parse: Callable[[str], Any]) -> BeforeValidator:
    return BeforeValidator(lambda text: tuple(map(parse, _parse_list(text))))


def _unless_none(parse: Callable[[str], Any]) -> BeforeValidator:
    return BeforeValidator(lambda text: None if text is None else parse(text))


Integer = Annotated[int, BeforeValidator(_parse_integer)]
Seconds = Annotated[Integer, Field(ge=1, le=86_400)]
Port = Annotated[Integer, Field(ge=0, le=65535)]
Size = Annotated[int, BeforeValidator(_parse_size)]
Capacity = Annotated[int | None, BeforeValidator(_parse_capacity)]
Rate = Annotated[int | None, BeforeValidator(_parse_rate)]
Items = Annotated[tuple[str, ...], BeforeValidator(_parse_list)]
HostNames = Annotated[tuple[str, ...], _list_of(_parse_host_name)]
Networks = Annotated[tuple[Network, ...], _list_of(ipaddress.ip_network)]
PortRange = Annotated[range | None, _unless_none(_parse_port_range)]
Ports = Annotated[frozenset[int], BeforeValidator(_parse_ports)]
Url = Annotated[str, BeforeValidator(_parse_url)]
Folder = Annotated[Path, BeforeValidator(parse_path)]
Secret = Annotated[Sensitive[str] | None, _unless_none(Sensitive)]
Kek = Annotated[Sensitive[bytes] | None, _unless_none(_parse_kek)]
Domain = Annotated[str, BeforeValidator(_parse_domain)]
Blobs = Annotated[str, BeforeValidator(_parse_blobs)]
Urls = Annotated[tuple[str, ...], _list_of(_parse_url)]
Flag = Annotated[bool, BeforeValidator(_parse_flag)]
HostOverrides = Annotated[Mapping[str, HostOverride], BeforeValidator(_parse_hosts)]
NameServers = Annotated[tuple[tuple[str, int], ...], _list_of(_parse_name_server)]
ModelServerPorts = Annotated[Mapping[str, int], BeforeValidator(_parse_model_servers)]
PaymentAssetList = Annotated[tuple[PaymentAsset, ...], _list_of(_parse_payment_asset)]
OptionalHostPort = Annotated[str | None, _unless_none(_parse_peer_address)]
OptionalFile = Annotated[Path | None, _unless_none(parse_path)]
ProtectedUrl = Annotated[str | None, _unless_none(_parse_protected_url)]
OptionalUrl = Annotated[str | None, _unless_none(_parse_url)]
AuthSecret = Annotated[Sensitive[str] | None, _unless_none(_parse_auth_secret)]
Token = Annotated[Sensitive[str] | None, _unless_none(_parse_token)]
EngineImages = Annotated[Mapping[str, Sequence[str]], BeforeValidator(_parse_engine_images)]
Uid = Annotated[int | None, BeforeValidator(_parse_uid)]
Labels = Annotated[Mapping[str, str], BeforeValidator(_parse_labels)]
Objects = Annotated[Sequence[Mapping[str, Any]], BeforeValidator(_parse_objects)]


def declare_setting(default: str | Callable[[Mapping[str, Any]], str] | None, description: str) -> Any:
    """Declare a setting. A default is written as in the environment, or computed from the settings before it."""
    if callable(default):
        return Field(default_factory=default, description=description, validate_default=True)
    return Field(default, description=description, validate_default=True)
