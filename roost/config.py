"""Configuration: the only reader of the environment and of the settings file, parsed once into frozen `Settings`.

Each setting has one declaration, a field of `Settings`: its name, type, default and help. `database_url` is
`ROOST_DATABASE_URL` in the environment and `database_url` in `roost.toml` of the data folder; the environment wins, and
a command-line flag wins over both. Secrets can also be given as a file (`ROOST_KEK_FILE`).
"""

import difflib
import ipaddress
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from roost.core.problem import InvalidInput
from roost.core.sensitive import Sensitive
from roost.drivers.model.contract import ModelSettings
from roost.net.addresses import Network
from roost.net.policy import HostOverride

_SECRETS = frozenset({"database_url", "kek", "kek_old", "kubo_auth", "metrics_token", "model_key"})
"""Settings that a file can hold (`ROOST_<NAME>_FILE`), and whose values no message shows."""
_CLIENT_VARIABLES = frozenset({"ROOST_URL", "ROOST_TOKEN"})  # of the command line as a client
_GIB = 1024**3
_MIN_BYTES = 64 * 1024**2
_UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": _GIB}
_SIZE = re.compile(r"([0-9]{1,19})([KMG]?)", re.IGNORECASE | re.ASCII)
_HOST = re.compile(r"([a-z0-9._-]{1,253})=(?:\[([0-9a-f:.]+)\]|([0-9.]+))(?::([0-9]{1,5}))?")
_AUTH_SECRET = re.compile(r"bearer:[!-~]+|basic:[^:\s]+:.+")
_DOMAIN = re.compile(r"(?=.{1,200}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*")


class BadSettings(InvalidInput):
    """A setting is unknown, malformed or unsafe; the message names it and the values that are allowed."""


def _parse_integer(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,15}", text):
        raise ValueError("must be an integer of 0 or more")
    return int(text)


def _parse_size(text: str) -> int:
    found = _SIZE.fullmatch(text)
    size = int(found[1]) * _UNITS[found[2].upper()] if found else 0
    if size < _MIN_BYTES:
        raise ValueError("must be a number of bytes of at least 64M, like 2147483648, 2048M or 2G")
    return size


def _parse_capacity(text: str) -> int | None:
    return None if text.lower() == "none" else _parse_size(text)


def _parse_domain(text: str) -> str:
    domain = text.lower().rstrip(".")
    if not _DOMAIN.fullmatch(domain):
        raise ValueError("must be a DNS name like example.com")
    return domain


def _parse_list(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",") if item.strip())


def _parse_networks(text: str) -> tuple[Network, ...]:
    return tuple(map(ipaddress.ip_network, _parse_list(text)))


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


def _parse_url(text: str) -> str:
    if not text.startswith(("http://", "https://")):
        raise ValueError("must be an http:// or https:// URL")
    return text.rstrip("/")


def _parse_urls(text: str) -> tuple[str, ...]:
    return tuple(map(_parse_url, _parse_list(text)))


def _parse_flag(text: str) -> bool:
    if text.lower() not in {"true", "false"}:
        raise ValueError("must be true or false")
    return text.lower() == "true"


def _parse_path(text: str | Path) -> Path:
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


def _parse_blobs(text: str) -> str:
    if "://" in text and not text.startswith(("s3://", "gs://", "az://")):
        raise ValueError("must be a folder, or s3://, gs:// or az:// with a bucket")
    return text


def _default_port(values: Mapping[str, Any]) -> str:
    return str(values["port"])


def _default_database(values: Mapping[str, Any]) -> str:
    return f"sqlite:///{values['data'] / 'roost.db'}"


def _unless_none(parse: Callable[[str], Any]) -> BeforeValidator:
    return BeforeValidator(lambda text: None if text is None else parse(text))


_Integer = Annotated[int, BeforeValidator(_parse_integer)]
_Seconds = Annotated[_Integer, Field(ge=1, le=86_400)]
_Port = Annotated[_Integer, Field(ge=0, le=65535)]
_Size = Annotated[int, BeforeValidator(_parse_size)]
_Capacity = Annotated[int | None, BeforeValidator(_parse_capacity)]
_Items = Annotated[tuple[str, ...], BeforeValidator(_parse_list)]
_Networks = Annotated[tuple[Network, ...], BeforeValidator(_parse_networks)]
_Ports = Annotated[frozenset[int], BeforeValidator(_parse_ports)]
_Url = Annotated[str, BeforeValidator(_parse_url)]
_Folder = Annotated[Path, BeforeValidator(_parse_path)]
_Secret = Annotated[Sensitive[str] | None, _unless_none(Sensitive)]
_Kek = Annotated[Sensitive[bytes] | None, _unless_none(_parse_kek)]


def _setting(default: str | Callable[[Mapping[str, Any]], str] | None, description: str) -> Any:
    """Declare a setting. A default is written as in the environment, or computed from the settings before it."""
    if callable(default):
        return Field(default_factory=default, description=description, validate_default=True)
    return Field(default, description=description, validate_default=True)


class Settings(BaseModel):
    """All settings of a server. Defaults are written as in `roost.toml`; `docs/reference/settings.md` lists all."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    data: _Folder = _setting(".roost", "The data folder: database, keys, agents' files.")
    host: str = _setting("127.0.0.1", "The address to listen on.")
    port: _Port = _setting("8642", "The port to listen on.")
    domain: Annotated[str, BeforeValidator(_parse_domain)] = _setting(
        "localhost", "The domain under which agents and APIs have their addresses."
    )
    public_scheme: Literal["http", "https"] = _setting("http", "`https` when a proxy in front of Roost terminates TLS.")
    public_port: _Port = _setting(
        _default_port,
        "The port in generated addresses, if a proxy in front listens on a port other than `port`.",
    )
    trusted_proxies: _Networks = _setting(
        "", "Addresses or networks of proxies whose `X-Forwarded-For` is trusted, comma-separated."
    )
    allow_plain_http: Literal["false", "true"] = _setting(
        "false", "`true` accepts the risk of listening beyond loopback without TLS."
    )
    keep_agents_on_stop: Literal["false", "true"] = _setting(
        "false", "`true` leaves agents running at SIGTERM, for the next server to adopt; Ctrl-C always stops them."
    )
    database_url: Annotated[Sensitive[str], BeforeValidator(Sensitive)] = _setting(
        _default_database,
        "`postgresql://...`; the default is a SQLite file in the data folder.",
    )
    blobs: Annotated[str, BeforeValidator(_parse_blobs)] = _setting(
        "blobs", "Storage of file content: a folder, or `s3://`, `gs://`, `az://` and bucket/prefix."
    )
    kek: _Kek = _setting(
        None, "Key-encryption key, 64 hexadecimal digits; by default the server generates one in the data folder."
    )
    kek_old: _Kek = _setting(
        None, "The previous `kek`, while `roost secrets rotate-key` re-encrypts all sealed values with the new one."
    )
    engines: _Folder = _setting(
        "$XDG_DATA_HOME/roost/engines",
        "The folder of installed engines; servers of a machine can share it.",
    )
    log_level: Literal["debug", "info", "warning", "error"] | None = _setting(
        None, "`debug`, `info`, `warning` or `error`; the default is `info`, on a terminal `warning`."
    )
    metrics_token: Annotated[Sensitive[str] | None, _unless_none(_parse_token)] = _setting(
        None, "Token that `/metrics` requires, of at least 16 characters; without it there are no metrics."
    )
    quota_free: _Integer = _setting("1", "Agents per tenant on the free plan.")
    quota_paid: _Integer = _setting("20", "Agents per tenant on the paid plan.")
    upload_free: _Size = _setting("1G", "Bytes of one uploaded file or folder on the free plan, like `1G`.")
    upload_paid: _Size = _setting("25G", "Bytes of one uploaded file or folder on the paid plan.")
    storage_free: _Capacity = _setting("10G", "Bytes that a tenant may store on the free plan, or `none` for no limit.")
    storage_paid: _Capacity = _setting(
        "none", "Bytes that a tenant may store on the paid plan, or `none` for no limit."
    )
    network: Literal["none", "trustless", "kubo"] = _setting(
        "none",
        "Source of content that is pinned by its CID: `none` (only this server), `trustless` gateways over "
        "HTTP, or a `kubo` node, which also announces public files.",
    )
    network_urls: Annotated[tuple[str, ...], BeforeValidator(_parse_urls)] = _setting(
        "https://trustless-gateway.link", "Trustless gateways, comma-separated."
    )
    kubo_api: _Url = _setting("http://127.0.0.1:5001", "The RPC address of your own kubo node.")
    kubo_auth: Annotated[Sensitive[str] | None, _unless_none(_parse_auth_secret)] = _setting(
        None, "The credential of that node, as kubo's `AuthSecret`: `bearer:TOKEN` or `basic:USER:PASSWORD`."
    )
    analytics_days: Annotated[_Integer, Field(le=3650)] = _setting(
        "90", "Days for which statistics of storage gateways are kept; 0 disables them."
    )
    catalogue: Annotated[bool, BeforeValidator(_parse_flag)] = _setting(
        "true",
        "Whether the skills and templates that come with Roost are published for all tenants; those that were stay.",
    )
    hub_registries: Annotated[tuple[str, ...], BeforeValidator(_parse_urls)] = _setting(
        "",
        "Registries of skills on other servers that the hub searches, too: addresses of other Roosts, or of any server "
        "with the protocol of ClawHub, comma-separated.",
    )
    agent_memory: _Size = _setting("2G", "Memory limit of one agent, in bytes or like `2G`.")
    agent_cpus: Annotated[float, Field(ge=0.01, le=1024)] = _setting("2", "CPU limit of one agent, in cores.")
    agent_pids: Annotated[_Integer, Field(ge=16)] = _setting("512", "Limit of processes and threads of one agent.")
    agent_disk: _Capacity = _setting(
        "20G", "Bytes of disk that workspace and home of one agent may occupy, or `none` for no limit."
    )
    disk_reserve: _Size = _setting(
        "1G", "Free bytes of the disk, at most a sixteenth of it, that agents leave to the server."
    )
    snapshot_delay: _Seconds = _setting("60", "Seconds from the last change of a workspace to its automatic snapshot.")
    egress_allow: _Networks = _setting("", "Private networks that agents may reach, comma-separated CIDRs.")
    egress_allow_hosts: _Items = _setting(
        "", "The only host names that agents may reach, with their subdomains, comma-separated; empty for all."
    )
    egress_deny_hosts: _Items = _setting(
        "", "Host names that agents may not reach, with their subdomains, comma-separated."
    )
    egress_deny_ports: _Ports = _setting("25", "Ports of other hosts that agents may not reach, or `none`.")
    egress_hosts: Annotated[Mapping[str, HostOverride], BeforeValidator(_parse_hosts)] = _setting(
        "",
        "Addresses that replace the DNS answers for agents: `name=address` or `name=address:port`, comma-separated.",
    )
    ca_file: Annotated[Path | None, _unless_none(_parse_path)] = _setting(
        None, "A PEM file of certificate authorities that agents trust in addition to the system's."
    )
    telegram_api: _Url = _setting("https://api.telegram.org", "Telegram's API, which checks bot tokens.")
    slack_api: _Url = _setting("https://slack.com/api", "Slack's API, which checks tokens.")
    discord_api: _Url = _setting("https://discord.com/api/v10", "Discord's API, which checks bot tokens.")
    model_url: Annotated[str | None, _unless_none(_parse_url)] = _setting(
        None, "Base URL of an OpenAI-compatible or Anthropic endpoint; by default a scripted stand-in."
    )
    model_api: Literal["openai", "anthropic"] = _setting("openai", "The API that the endpoint speaks.")
    model_key: _Secret = _setting(None, "The key for that endpoint. It stays on the host.")
    model_timeout: _Seconds = _setting("600", "Seconds for a model's answer in one piece; then the caller gets 504.")
    model_idle_timeout: _Seconds = _setting(
        "120",
        "Seconds in which a model must begin a streamed answer, and continue it; then the stream ends in an error.",
    )
    models: _Items = _setting(
        "",
        "Model ids to offer, comma-separated, the default first; by default all models that the endpoint lists.",
    )

    @property
    def kek_file(self) -> Path:
        return self.data / "keys" / "kek"

    @property
    def upstreams(self) -> tuple[ModelSettings, ...]:
        if self.model_url is None:
            return ()
        return (ModelSettings(self.model_api, self.model_api, self.model_url, self.model_key, self.models),)

    @model_validator(mode="after")
    def _refuse_unsafe(self) -> Self:
        exposed = self.host not in ("127.0.0.1", "::1", "localhost")
        if exposed and self.public_scheme == "http" and self.allow_plain_http == "false":
            raise BadSettings(
                f"host: {self.host} can be reached from outside, and tokens would travel without TLS. Put a TLS "
                "proxy in front and set ROOST_PUBLIC_SCHEME=https, or accept the risk with ROOST_ALLOW_PLAIN_HTTP=true."
            )
        return self


def load_settings(environment: Mapping[str, str] | None = None, **flags: Any) -> Settings:
    """Load settings from flags (None means not given), environment and `roost.toml`. Raises BadSettings."""
    source = os.environ if environment is None else environment
    given = dict(_read_environment(source)) | {name: value for name, value in flags.items() if value is not None}
    file = _read_file(_parse_path(given.get("data") or ".roost") / "roost.toml")
    data_home = source.get("XDG_DATA_HOME") or "~/.local/share"
    texts = {name: _as_text(name, value) for name, value in {**file, **given}.items()}
    values = {"engines": f"{data_home}/roost/engines"} | {name: text for name, text in texts.items() if text}
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        raise BadSettings(_describe_error(error.errors()[0])) from None


def variable_name(setting: str) -> str:
    return f"ROOST_{setting.upper()}"


def _read_environment(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    names = {variable_name(name): name for name in Settings.model_fields}
    files = {f"{variable_name(name)}_FILE": name for name in _SECRETS}
    for variable, text in environment.items():
        if variable in names:
            yield names[variable], text
        elif variable in files:
            if text and variable_name(files[variable]) not in environment:
                yield files[variable], _read_secret(variable, text)
        elif variable.startswith("ROOST_") and variable not in _CLIENT_VARIABLES:
            raise BadSettings(f"{variable}: unknown variable{_suggest_name(variable, [*names, *files])}")


def _read_secret(variable: str, path: str) -> str:
    try:
        return Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise BadSettings(f"{variable}: {path} could not be read: {error}") from None


def _read_file(path: Path) -> Mapping[str, Any]:
    try:
        content = tomllib.loads(path.read_text())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadSettings(f"{path}: {error}") from None
    known = Settings.model_fields.keys() - {"data"}  # the file is in the data folder
    if unknown := content.keys() - known:
        raise BadSettings(f"{path}: unknown setting {min(unknown)!r}{_suggest_name(min(unknown), known)}")
    return content


def _as_text(name: str, value: Any) -> str:
    """Return a value of a flag or of the file in the notation of the environment."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ",".join(_as_text(name, item) for item in cast("list[Any]", value))
    if not isinstance(value, str | int | float | Path):
        raise BadSettings(f"{name}: must be a string, a number or a list, got {value!r}")
    return str(value).strip()


def _suggest_name(name: str, known: Iterable[str]) -> str:
    nearest = difflib.get_close_matches(name, sorted(known), 1, cutoff=0.7)
    return f"; did you mean {nearest[0]}?" if nearest else "; docs/reference/settings.md lists all settings"


def _describe_error(error: ErrorDetails) -> str:
    name = str(error["loc"][0])
    cause = error.get("ctx", {}).get("error")
    message = str(cause) if cause else error["msg"].replace("Input should be", "must be")
    return f"{name}: {message}" if name in _SECRETS else f"{name}: {message}, got {error['input']!r}"
