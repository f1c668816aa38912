"""Configuration: the only reader of the environment and of the settings file. Parsed once into a frozen `Settings`.

Each setting has one name: `ROOST_DATABASE_URL` in the environment is `database_url` in `roost.toml` of the data folder;
the environment wins, and a command-line flag wins over both. Secrets can also be given as a file (`ROOST_KEK_FILE`).
"""

import ipaddress
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from roost.core.problem import InvalidInput
from roost.core.sensitive import Sensitive
from roost.drivers.model.contract import ModelSettings
from roost.net.addresses import Network
from roost.net.policy import HostOverride

_GIB = 1024**3
_LEAST_MEMORY = 64 * 1024**2
_HOST = re.compile(r"([a-z0-9._-]{1,253})=(?:\[([0-9a-f:.]+)\]|([0-9.]+))(?::([0-9]{1,5}))?")
_AUTH_SECRET = re.compile(r"bearer:[!-~]+|basic:[^:\s]+:.+")
_DOMAIN = re.compile(r"(?=.{1,200}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*")


class BadSettings(InvalidInput):
    """A setting is unknown, malformed or unsafe; the message names it and says what to do."""


@dataclass(frozen=True)
class SettingOption:
    """One setting: its name in `roost.toml`, what it means, and its default as a person would write it."""

    name: str
    help: str
    default: str = ""

    @property
    def variable(self) -> str:
        return f"ROOST_{self.name.upper()}"


OPTIONS: Sequence[SettingOption] = (
    SettingOption("data", "The data folder: database, keys, agents' files.", ".roost"),
    SettingOption("host", "The address to listen on.", "127.0.0.1"),
    SettingOption("port", "The port to listen on.", "8642"),
    SettingOption("domain", "The domain under which agents and APIs have their addresses.", "localhost"),
    SettingOption("public_scheme", "`https` when a proxy in front of Roost terminates TLS.", "http"),
    SettingOption("public_port", "The port in generated addresses, when a proxy in front has another one.", "the port"),
    SettingOption(
        "trusted_proxies", "Addresses or networks of proxies whose `X-Forwarded-For` is believed, comma-separated."
    ),
    SettingOption(
        "allow_plain_http", "Listen on more than loopback without TLS in front: `true` to accept the risk.", "false"
    ),
    SettingOption("database_url", "`postgresql://...`; the default is a SQLite file in the data folder."),
    SettingOption(
        "blobs", "Where the bytes of files are kept: a folder, or `s3://`, `gs://`, `az://` and bucket/prefix.", "blobs"
    ),
    SettingOption("kek", "Key-encryption key, 64 hexadecimal digits; the default is made once in the data folder."),
    SettingOption("kek_old", "The key before `kek`, while `roost secrets rotate-key` seals everything anew."),
    SettingOption(
        "engines", "Where engines are installed; servers of a machine can share it.", "$XDG_DATA_HOME/roost/engines"
    ),
    SettingOption("log_level", "`debug`, `info`, `warning` or `error`.", "info; on a terminal warning"),
    SettingOption("quota_free", "Agents per tenant on the free plan.", "1"),
    SettingOption("quota_paid", "Agents per tenant on the paid plan.", "20"),
    SettingOption("upload_free", "Bytes of one uploaded file or folder on the free plan, like `1G`.", "1G"),
    SettingOption("upload_paid", "Bytes of one uploaded file or folder on the paid plan.", "25G"),
    SettingOption("storage_free", "Bytes that a tenant may keep on the free plan, or `none` for any number.", "10G"),
    SettingOption("storage_paid", "Bytes that a tenant may keep on the paid plan, or `none` for any number.", "none"),
    SettingOption(
        "network",
        "Where content to pin by its CID comes from: `none` (only this server), `trustless` gateways over HTTP, or a "
        "`kubo` node, which also offers what is public here.",
        "none",
    ),
    SettingOption("network_urls", "Trustless gateways, comma-separated.", "https://trustless-gateway.link"),
    SettingOption("kubo_api", "The RPC address of a kubo node of your own.", "http://127.0.0.1:5001"),
    SettingOption("kubo_auth", "Its credential, as kubo's `AuthSecret`: `bearer:TOKEN` or `basic:USER:PASSWORD`."),
    SettingOption("analytics_days", "Days for which it is kept what storage gateways served; 0 counts nothing.", "90"),
    SettingOption("agent_memory", "Memory limit of one agent, in bytes or like `2G`.", "2G"),
    SettingOption("agent_cpus", "CPU limit of one agent, in cores.", "2"),
    SettingOption("agent_pids", "Limit of processes and threads of one agent.", "512"),
    SettingOption("egress_allow", "Private networks that agents may reach, comma-separated CIDRs."),
    SettingOption("egress_deny_hosts", "Host names (and all below them) that agents may not reach, comma-separated."),
    SettingOption(
        "egress_hosts",
        "Where names lead for agents whatever DNS says: `name=address` or `name=address:port`, comma-separated.",
    ),
    SettingOption("ca_file", "A PEM file of certificate authorities that agents trust beside the system's."),
    SettingOption("telegram_api", "Where Telegram's API is asked about a new bot token.", "https://api.telegram.org"),
    SettingOption("slack_api", "Where Slack's API is asked about new tokens.", "https://slack.com/api"),
    SettingOption("discord_api", "Where Discord's API is asked about a new bot token.", "https://discord.com/api/v10"),
    SettingOption(
        "model_url", "Base URL of an OpenAI-compatible or Anthropic endpoint; without it, a scripted stand-in."
    ),
    SettingOption("model_api", "`openai` or `anthropic`: what the endpoint speaks.", "openai"),
    SettingOption("model_key", "The key for that endpoint. It stays on the host."),
    SettingOption("models", "Model ids to offer, comma-separated, the default first; else what the endpoint lists."),
)
_IN_FILE = {option.name for option in OPTIONS} - {"data"}  # the file stands in the data folder


@dataclass(frozen=True)
class Settings:
    data: Path
    host: str
    port: int
    domain: str
    public_scheme: Literal["http", "https"]
    public_port: int
    trusted_proxies: tuple[Network, ...]
    database_url: Sensitive[str]
    blobs: str
    kek: Sensitive[bytes] | None
    kek_old: Sensitive[bytes] | None
    engines: Path
    log_level: str | None
    quota_free: int
    quota_paid: int
    upload_free: int
    upload_paid: int
    storage_free: int | None
    storage_paid: int | None
    network: Literal["none", "trustless", "kubo"]
    network_urls: tuple[str, ...]
    kubo_api: str
    kubo_auth: Sensitive[str] | None
    analytics_days: int
    agent_memory: int
    agent_cpus: float
    agent_pids: int
    egress_allow: tuple[Network, ...]
    egress_deny_hosts: tuple[str, ...]
    egress_hosts: Mapping[str, HostOverride]
    ca_file: Path | None
    telegram_api: str
    slack_api: str
    discord_api: str
    upstreams: tuple[ModelSettings, ...]

    @property
    def kek_file(self) -> Path:
        return self.data / "keys" / "kek"


def load_settings(environment: Mapping[str, str] | None = None, **flags: Any) -> Settings:
    """Settings from flags (None means not given), environment and `roost.toml`. Raises BadSettings."""
    source = os.environ if environment is None else environment
    data = Path(flags.get("data") or source.get("ROOST_DATA") or ".roost").expanduser().resolve()
    return _SettingsReader(source, _file(data / "roost.toml"), flags).settings(data)


class _SettingsReader:
    """Finds the text of a setting and turns it into its type; errors name the setting."""

    def __init__(self, environment: Mapping[str, str], file: Mapping[str, Any], flags: Mapping[str, Any]) -> None:
        self._environment = environment
        self._file = file
        self._flags = flags

    def settings(self, data: Path) -> Settings:
        port = self._number("port", 8642, low=0, high=65535)
        settings = Settings(
            data=data,
            host=self._text("host") or "127.0.0.1",
            port=port,
            domain=self._domain(),
            public_scheme=cast("Literal['http', 'https']", self._one_of("public_scheme", ("http", "https"))),
            public_port=self._number("public_port", port, low=0, high=65535),
            trusted_proxies=self._networks("trusted_proxies"),
            database_url=Sensitive(self._text("database_url") or f"sqlite:///{data / 'roost.db'}"),
            blobs=self._blobs(),
            kek=self._kek("kek"),
            kek_old=self._kek("kek_old"),
            engines=Path(self._text("engines") or _default_engines(self._environment)).expanduser().resolve(),
            log_level=self._one_of("log_level", ("", "debug", "info", "warning", "error")) or None,
            quota_free=self._number("quota_free", 1),
            quota_paid=self._number("quota_paid", 20),
            upload_free=self._bytes("upload_free", _GIB),
            upload_paid=self._bytes("upload_paid", 25 * _GIB),
            storage_free=self._capacity("storage_free", 10 * _GIB),
            storage_paid=self._capacity("storage_paid", None),
            network=cast(
                "Literal['none', 'trustless', 'kubo']", self._one_of("network", ("none", "trustless", "kubo"))
            ),
            network_urls=self._addresses("network_urls"),
            kubo_api=self._address("kubo_api"),
            kubo_auth=self._auth_secret("kubo_auth"),
            analytics_days=self._number("analytics_days", 90, high=3650),
            agent_memory=self._bytes("agent_memory", 2 * _GIB),
            agent_cpus=self._decimal("agent_cpus", 2.0),
            agent_pids=self._number("agent_pids", 512, low=16),
            egress_allow=self._networks("egress_allow"),
            egress_deny_hosts=self._list("egress_deny_hosts"),
            egress_hosts=dict(map(_host, self._list("egress_hosts"))),
            ca_file=self._path("ca_file"),
            telegram_api=self._address("telegram_api"),
            slack_api=self._address("slack_api"),
            discord_api=self._address("discord_api"),
            upstreams=self._upstreams(),
        )
        self._refuse_unsafe(settings)
        return settings

    def _text(self, name: str) -> str:
        flag = self._flags.get(name)
        if flag is not None:
            return str(flag)
        variable = f"ROOST_{name.upper()}"
        if variable in self._environment:
            return self._environment[variable].strip()
        if path := self._environment.get(f"{variable}_FILE"):
            try:
                return Path(path).read_text().strip()
            except (OSError, UnicodeDecodeError) as error:
                raise BadSettings(f"{variable}_FILE: {path} could not be read: {error}") from None
        return _as_text(name, self._file.get(name, ""))

    def _number(self, name: str, default: int, *, low: int = 0, high: int = 2**53) -> int:
        text = self._text(name)
        if not text:
            return default
        if not text.isascii() or not text.isdigit() or not low <= int(text) <= high:
            raise BadSettings(f"{name}: a whole number from {low} to {high}, please, not {text!r}")
        return int(text)

    def _decimal(self, name: str, default: float) -> float:
        text = self._text(name)
        try:
            value = float(text) if text else default
        except ValueError:
            value = -1.0
        if not 0.01 <= value <= 1024:
            raise BadSettings(f"{name}: a number from 0.01 to 1024, please, not {text!r}")
        return value

    def _bytes(self, name: str, default: int) -> int:
        text = self._text(name)
        if not text:
            return default
        units = {"K": 1024, "M": 1024**2, "G": _GIB}
        digits, unit = (text[:-1], units.get(text[-1].upper(), 0)) if text[-1].isalpha() else (text, 1)
        if not digits.isascii() or not digits.isdigit() or int(digits) * unit < _LEAST_MEMORY:
            raise BadSettings(f"{name}: at least 64M, like 2147483648, 2048M or 2G, please, not {text!r}")
        return int(digits) * unit

    def _capacity(self, name: str, default: int | None) -> int | None:
        text = self._text(name)
        if text.lower() == "none" or (not text and default is None):
            return None
        return self._bytes(name, default or 0)

    def _one_of(self, name: str, values: Sequence[str]) -> str:
        text = self._text(name) or values[0]
        if text not in values:
            raise BadSettings(f"{name}: one of {', '.join(filter(None, values))}, please, not {text!r}")
        return text

    def _domain(self) -> str:
        text = (self._text("domain") or "localhost").lower().rstrip(".")
        if not _DOMAIN.fullmatch(text):
            raise BadSettings(f"domain: a name like example.com, please, not {text!r}")
        return text

    def _list(self, name: str) -> tuple[str, ...]:
        return tuple(item.strip() for item in self._text(name).split(",") if item.strip())

    def _networks(self, name: str) -> tuple[Network, ...]:
        try:
            return tuple(ipaddress.ip_network(item) for item in self._list(name))
        except ValueError as error:
            raise BadSettings(f"{name}: {error}") from None

    def _path(self, name: str) -> Path | None:
        text = self._text(name)
        return Path(text).expanduser().resolve() if text else None

    def _kek(self, name: str) -> Sensitive[bytes] | None:
        text = self._text(name)
        if not text:
            return None
        try:
            key = bytes.fromhex(text)
        except ValueError:
            key = b""
        if len(key) != 32:
            raise BadSettings(f"{name}: 64 hexadecimal digits, please (32 bytes)")
        return Sensitive(key)

    def _auth_secret(self, name: str) -> Sensitive[str] | None:
        text = self._text(name)
        if text and not _AUTH_SECRET.fullmatch(text):
            raise BadSettings(f"{name}: `bearer:TOKEN` or `basic:USER:PASSWORD`, please")
        return Sensitive(text) if text else None

    def _blobs(self) -> str:
        """The address of a bucket, or a folder, which may be relative to the data folder."""
        text = self._text("blobs") or "blobs"
        if "://" in text and not text.startswith(("s3://", "gs://", "az://")):
            raise BadSettings(f"blobs: a folder, or s3://, gs:// or az:// with a bucket, please, not {text!r}")
        return text

    def _address(self, name: str) -> str:
        url = self._text(name) or next(option.default for option in OPTIONS if option.name == name)
        if not url.startswith(("http://", "https://")):
            raise BadSettings(f"{name}: an http or https address, please, not {url!r}")
        return url.rstrip("/")

    def _addresses(self, name: str) -> tuple[str, ...]:
        urls = self._list(name) or (next(option.default for option in OPTIONS if option.name == name),)
        for url in urls:
            if not url.startswith(("http://", "https://")):
                raise BadSettings(f"{name}: http or https addresses, please, not {url!r}")
        return tuple(url.rstrip("/") for url in urls)

    def _upstreams(self) -> tuple[ModelSettings, ...]:
        url = self._text("model_url")
        if not url:
            return ()
        if not url.startswith(("http://", "https://")):
            raise BadSettings(f"model_url: an http or https address, please, not {url!r}")
        key = self._text("model_key")
        api = cast("Literal['openai', 'anthropic']", self._one_of("model_api", ("openai", "anthropic")))
        secret = Sensitive(key) if key else None
        return (ModelSettings(api, api, url.rstrip("/"), secret, self._list("models")),)

    def _refuse_unsafe(self, settings: Settings) -> None:
        exposed = settings.host not in ("127.0.0.1", "::1", "localhost")
        accepted = self._one_of("allow_plain_http", ("false", "true")) == "true"
        if exposed and settings.public_scheme == "http" and not accepted:
            raise BadSettings(
                f"host: {settings.host} can be reached from outside, and tokens would travel without TLS. Put a TLS "
                "proxy in front and set ROOST_PUBLIC_SCHEME=https, or accept the risk with ROOST_ALLOW_PLAIN_HTTP=true."
            )


def _file(path: Path) -> Mapping[str, Any]:
    try:
        content = tomllib.loads(path.read_text())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadSettings(f"{path}: {error}") from None
    if unknown := content.keys() - _IN_FILE:
        raise BadSettings(f"{path}: unknown setting {min(unknown)!r}; `docs/reference/settings.md` lists all")
    return content


def _as_text(name: str, value: Any) -> str:
    """A value of the file as it would stand in the environment."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ",".join(_as_text(name, item) for item in cast("list[Any]", value))
    if not isinstance(value, str | int | float):
        raise BadSettings(f"{name}: a text, a number or a list, please, not {value!r}")
    return str(value).strip()


def _host(item: str) -> tuple[str, HostOverride]:
    """`name=192.0.2.7`, `name=192.0.2.7:8443` or `name=[2001:db8::7]:8443`."""
    found = _HOST.fullmatch(item.lower())
    if found is not None:
        name, six, four, port = found.groups()
        with suppress(ValueError):
            address = ipaddress.ip_address(six or four)
            if port is None or 1 <= int(port) <= 65535:
                return name.removesuffix("."), (address, int(port) if port else None)
    raise BadSettings(f"egress_hosts: name=address or name=address:port, please, not {item!r}")


def _default_engines(environment: Mapping[str, str]) -> str:
    home = environment.get("XDG_DATA_HOME") or "~/.local/share"
    return f"{home}/roost/engines"
