"""The settings of a server: each has one declaration, a field of `Settings` with its type, default and help."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from roost.core.problem import InvalidInput
from roost.core.sensitive import Sensitive
from roost.drivers.embedding.contract import EmbeddingSettings
from roost.drivers.model.contract import ModelSettings
from roost.kubernetes_settings import KubernetesSettings
from roost.net.addresses import parse_address
from roost.setting_types import (
    AuthSecret,
    Blobs,
    Capacity,
    Domain,
    EngineImages,
    Flag,
    Folder,
    HostNames,
    HostOverrides,
    Integer,
    Items,
    Kek,
    ModelServerPorts,
    NameServers,
    Networks,
    OptionalFile,
    OptionalHostPort,
    OptionalUrl,
    PaymentAssetList,
    Port,
    PortRange,
    Ports,
    ProtectedUrl,
    Rate,
    Seconds,
    Secret,
    Size,
    Token,
    Url,
    Urls,
)
from roost.setting_types import declare_setting as _setting

SECRET_SETTINGS = frozenset(
    """
    database_url embedding_key facilitator_key facilitator_token kek kek_old kubo_auth metrics_token model_key
    """.split()
)
"""Settings that a file can hold (`ROOST_<NAME>_FILE`), and whose values no message shows."""


class BadSettings(InvalidInput):
    """A setting is unknown, malformed or unsafe; the message names it and the values that are allowed."""


def _default_scheme(values: Mapping[str, Any]) -> str:
    return "https" if values["tls"] else "http"


def _default_port(values: Mapping[str, Any]) -> str:
    return str(values["tls_port" if values["tls"] else "port"])


def _default_database(values: Mapping[str, Any]) -> str:
    return f"sqlite:///{values['data'] / 'roost.db'}"


class Settings(KubernetesSettings):
    """All settings of a server. Defaults are written as in `roost.toml`; `docs/reference/settings.md` lists all."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    data: Folder = _setting(".roost", "The data folder: database, keys, agents' files.")
    host: str = _setting("127.0.0.1", "The address to listen on.")
    port: Port = _setting("8642", "The port to listen on.")
    domain: Domain = _setting("localhost", "The domain under which agents and APIs have their addresses.")
    agent_ports: PortRange = _setting(
        None,
        "Ports, like `9000-9099`, of which each agent gets one as its address, where no names below the domain exist: "
        "`domain` may then be an IP address or one host name.",
    )
    tls: Flag = _setting(
        "false", "`true` (or `roost up --tls`) serves HTTPS by Caddy, with certificates that it obtains by itself."
    )
    tls_host: str = _setting("::", "The address on which Caddy listens; `::` for all, of IPv4, too.")
    tls_port: Port = _setting("443", "The port for HTTPS (HTTP/1.1 and 2 over TCP, HTTP/3 over UDP).")
    tls_http_port: Port = _setting(
        "80", "The port that redirects HTTP to HTTPS and answers the ACME server (HTTP-01), which asks at port 80."
    )
    tls_email: str | None = _setting(None, "Your e-mail address for the ACME server, which warns of trouble.")
    acme_url: Url = _setting(
        "https://acme-v02.api.letsencrypt.org/directory", "The directory of the ACME server that issues certificates."
    )
    acme_ca: OptionalFile = _setting(
        None, "A PEM file with the authorities of a private ACME server: of its own address, and of what it issues."
    )
    tls_certificate: OptionalFile = _setting(
        None, "A PEM file with a certificate of yours and its chain; a changed file is loaded within seconds."
    )
    tls_key: OptionalFile = _setting(None, "The PEM file with the private key of `tls_certificate`.")
    caddy: OptionalFile = _setting(None, "The program Caddy; by default the one that is installed with Roost.")
    public_scheme: Literal["http", "https"] = _setting(
        _default_scheme, "`https` when a proxy in front of Roost terminates TLS, and with `tls`."
    )
    public_port: Port = _setting(
        _default_port,
        "The port in generated addresses, if it is not `port`, or `tls_port` with `tls`.",
    )
    trusted_proxies: Networks = _setting(
        "", "Addresses or networks of proxies whose `X-Forwarded-For` is trusted, comma-separated."
    )
    allow_plain_http: Literal["false", "true"] = _setting(
        "false", "`true` accepts the risk of listening beyond loopback without TLS."
    )
    rate_limit: Rate = _setting(
        "6000", "Requests a minute of one caller: a credential, an agent from inside, or an anonymous client's address."
    )
    rate_limit_bytes: Capacity = _setting(
        "50G", "Bytes a minute of one caller, both ways; what is under way is not cut off. `none` for no limit."
    )
    host_rate_limit: Rate = _setting(
        "60000", "Requests a minute to one agent's address, domain or storage gateway, or `none` for no limit."
    )
    host_rate_limit_bytes: Capacity = _setting(
        "200G", "Bytes a minute of one agent's address, domain or storage gateway, or `none` for no limit."
    )
    failed_login_limit: Rate = _setting(
        "300", "Failed credentials a minute from one address, after which they get 429, or `none` for no limit."
    )
    rate_limit_loopback: Flag = _setting("false", "Whether these limits apply to programs on this machine, too.")
    keep_agents_on_stop: Literal["false", "true"] = _setting(
        "false", "`true` leaves agents running at SIGTERM, for the next server to adopt; Ctrl-C always stops them."
    )
    peer_address: OptionalHostPort = _setting(
        None,
        "The `host:port` at which other servers of the same database reach this one, for requests for its agents, and "
        "so that agents can be moved to it; it listens there, with TLS. By default they cannot.",
    )
    database_url: Annotated[Sensitive[str], BeforeValidator(Sensitive)] = _setting(
        _default_database,
        "`postgresql://...`; the default is a SQLite file in the data folder.",
    )
    blobs: Blobs = _setting(
        "blobs", "Storage of file content: a folder, or `s3://`, `gs://`, `az://` and bucket/prefix."
    )
    git_storage: Literal["folder", "blobs"] = _setting(
        "folder",
        "Where the Git repositories of agents are: in a `folder` of the data folder, or among the `blobs`, where other "
        "servers of the same database find them; the folder is a cache then.",
    )
    kek: Kek = _setting(
        None, "Key-encryption key, 64 hexadecimal digits; by default the server generates one in the data folder."
    )
    kek_old: Kek = _setting(
        None, "The previous `kek`, while `roost secrets rotate-key` re-encrypts all sealed values with the new one."
    )
    engines: Folder = _setting(
        "$XDG_DATA_HOME/roost/engines",
        "The folder of installed engines; servers of a machine can share it.",
    )
    runtime: Literal["bwrap", "docker", "kubernetes"] = _setting(
        "bwrap",
        "Where the containers of agents are: `bwrap`, processes of this machine; `docker`, a Docker Engine; or "
        "`kubernetes`, pods of a cluster.",
    )
    other_runtime: Literal["bwrap", "docker"] | None = _setting(
        None, "A second runtime, to which and from which `roost move` moves agents; by default there is none."
    )
    engine_images: EngineImages = _setting(
        "",
        "Versions of engines that images have, `openclaw@2026.9.6,hermes@0.19.0`, the newest of each first; by default "
        "those that are installed on this machine, with `kubernetes` the default of each engine.",
    )
    sandbox: Literal["bwrap", "landlock"] = _setting(
        "bwrap",
        "How programs that read hostile input (Git, images, documents) are confined: by `bwrap`, or by `landlock` "
        "where a server may make no namespaces, as in a restricted pod.",
    )
    docker_socket: Folder = _setting(
        "/var/run/docker.sock",
        "The socket of that engine, or of Podman's service. Its users are as good as root there.",
    )
    docker_image: str = _setting(
        "buildpack-deps:bookworm-scm",
        "The image below those of the agents, with Python 3.11 or newer as `/usr/bin/python3`, Git, curl and "
        "certificate authorities; it is pulled if it is not there.",
    )
    docker_repository: str = _setting(
        "", "The prefix of ready images, `registry.example.com/team`, which are pulled; by default they are made here."
    )
    docker_oci_runtime: str = _setting(
        "", "The OCI runtime of agents' containers, such as `runsc` of gVisor; by default that of the engine."
    )
    log_level: Literal["debug", "info", "warning", "error"] | None = _setting(
        None, "`debug`, `info`, `warning` or `error`; the default is `info`, on a terminal `warning`."
    )
    metrics_token: Token = _setting(
        None, "Token that `/metrics` requires, of at least 16 characters; without it there are no metrics."
    )
    quota_free: Integer = _setting("1", "Agents per tenant on the free plan.")
    quota_paid: Integer = _setting("20", "Agents per tenant on the paid plan.")
    upload_free: Size = _setting("1G", "Bytes of one uploaded file or folder on the free plan, like `1G`.")
    upload_paid: Size = _setting("25G", "Bytes of one uploaded file or folder on the paid plan.")
    storage_free: Capacity = _setting("10G", "Bytes that a tenant may store on the free plan, or `none` for no limit.")
    storage_paid: Capacity = _setting("none", "Bytes that a tenant may store on the paid plan, or `none` for no limit.")
    network: Literal["none", "trustless", "kubo"] = _setting(
        "none",
        "Source of content that is pinned by its CID: `none` (only this server), `trustless` gateways over "
        "HTTP, or a `kubo` node, which also announces public files.",
    )
    network_urls: Urls = _setting("https://trustless-gateway.link", "Trustless gateways, comma-separated.")
    kubo_api: Url = _setting("http://127.0.0.1:5001", "The RPC address of your own kubo node.")
    kubo_auth: AuthSecret = _setting(
        None, "The credential of that node, as kubo's `AuthSecret`: `bearer:TOKEN` or `basic:USER:PASSWORD`."
    )
    facilitator_url: ProtectedUrl = _setting(
        None, "The facilitator that checks and settles payments for private files (x402); without it there are none."
    )
    facilitator_token: Token = _setting(
        None, "The bearer token that the facilitator requires, yours at `facilitator_url` or `roost facilitator`."
    )
    facilitator_rpc: OptionalUrl = _setting(
        None, "The RPC address of the chain to which `roost facilitator` sends transactions."
    )
    facilitator_key: Secret = _setting(
        None, "The private key of the account that sends them, and pays their fees: 64 hexadecimal digits."
    )
    analytics_days: Annotated[Integer, Field(le=3650)] = _setting(
        "90", "Days for which statistics of storage gateways are kept; 0 disables them."
    )
    payment_assets: PaymentAssetList = _setting(
        "",
        "Tokens that payment instructions may ask for besides USDC on Base and Base Sepolia, comma-separated: "
        "`eip155:CHAIN/0xTOKEN=NAME/VERSION`, with name and version of its EIP-712 domain; before it `NETWORK@` if "
        "x402 has a name for the chain: `polygon@eip155:137/0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359=USD Coin/2`.",
    )
    catalogue: Flag = _setting(
        "true",
        "Whether the skills and templates that come with Roost are published for all tenants; those that were stay.",
    )
    hub_registries: Urls = _setting(
        "",
        "Registries of skills on other servers that the hub searches, too: addresses of other Roosts, or of any server "
        "with the protocol of ClawHub, comma-separated.",
    )
    agent_memory: Size = _setting("2G", "Memory limit of one agent, in bytes or like `2G`.")
    agent_cpus: Annotated[float, Field(ge=0.01, le=1024)] = _setting("2", "CPU limit of one agent, in cores.")
    agent_pids: Annotated[Integer, Field(ge=16)] = _setting("512", "Limit of processes and threads of one agent.")
    agent_disk: Capacity = _setting(
        "20G", "Bytes of disk that workspace and home of one agent may occupy, or `none` for no limit."
    )
    disk_reserve: Size = _setting(
        "1G", "Free bytes of the disk, at most a sixteenth of it, that agents leave to the server."
    )
    snapshot_delay: Seconds = _setting("60", "Seconds from the last change of a workspace to its automatic snapshot.")
    egress_allow: Networks = _setting("", "Private networks that agents may reach, comma-separated CIDRs.")
    egress_allow_hosts: HostNames = _setting(
        "", "The only host names that agents may reach, with their subdomains, comma-separated; empty for all."
    )
    egress_deny_hosts: HostNames = _setting(
        "", "Host names that agents may not reach, with their subdomains, comma-separated."
    )
    egress_deny_ports: Ports = _setting("25", "Ports of other hosts that agents may not reach, or `none`.")
    egress_hosts: HostOverrides = _setting(
        "",
        "Addresses that replace the DNS answers for agents: `name=address` or `name=address:port`, comma-separated.",
    )
    dns_servers: NameServers = _setting(
        "",
        "Name servers that are asked for the TXT records of domains, `address` or `address:port`, comma-separated; by "
        "default those of the system.",
    )
    reserved_words: Items = _setting("roost", "Words that no domain of a tenant may contain, comma-separated.")
    ca_file: OptionalFile = _setting(
        None, "A PEM file of certificate authorities that agents trust in addition to the system's."
    )
    telegram_api: Url = _setting("https://api.telegram.org", "Telegram's API, which checks bot tokens.")
    slack_api: Url = _setting("https://slack.com/api", "Slack's API, which checks tokens.")
    discord_api: Url = _setting("https://discord.com/api/v10", "Discord's API, which checks bot tokens.")
    model_url: OptionalUrl = _setting(
        None, "Base URL of an OpenAI-compatible or Anthropic endpoint; by default a scripted stand-in."
    )
    model_api: Literal["openai", "anthropic"] = _setting("openai", "The API that the endpoint speaks.")
    model_key: Secret = _setting(None, "The key for that endpoint. It stays on the host.")
    model_timeout: Seconds = _setting("600", "Seconds for a model's answer in one piece; then the caller gets 504.")
    model_idle_timeout: Seconds = _setting(
        "120",
        "Seconds in which a model must begin a streamed answer, and continue it; then the stream ends in an error.",
    )
    models: Items = _setting(
        "",
        "Model ids to offer, comma-separated, the default first; by default all models that the endpoint lists.",
    )
    model_servers: ModelServerPorts = _setting(
        "ollama=11434,lmstudio=1234,llamacpp=8080",
        "Model servers that are offered if they answer at these ports of 127.0.0.1, to the operator alone and only if "
        "no other machine can reach Roost; `none` to look for none.",
    )
    embedding_url: OptionalUrl = _setting(
        None,
        "Base URL of an OpenAI-compatible endpoint for embeddings (`https://host/v1`); by default all-MiniLM-L6-v2, "
        "which comes with Roost, on this machine.",
    )
    embedding_key: Secret = _setting(None, "The key for that endpoint. It stays on the host.")
    embedding_model: str | None = _setting(
        None, "The id of the model at that endpoint. Vectors of another model are never compared with its own."
    )

    @property
    def kek_file(self) -> Path:
        return self.data / "keys" / "kek"

    @property
    def is_local(self) -> bool:
        """Whether only programs of this machine reach `host`."""
        return self.host in ("127.0.0.1", "::1", "localhost")

    @property
    def upstreams(self) -> tuple[ModelSettings, ...]:
        if self.model_url is None:
            return ()
        return (ModelSettings(self.model_api, self.model_api, self.model_url, self.model_key, self.models),)

    @property
    def embedding(self) -> EmbeddingSettings | None:
        if self.embedding_url is None or self.embedding_model is None:
            return None
        return EmbeddingSettings(self.embedding_url, self.embedding_model, self.embedding_key)

    @model_validator(mode="after")
    def _check_runtimes(self) -> Self:
        if self.other_runtime == self.runtime:
            raise BadSettings(f"other_runtime: must be another one than runtime, got {self.other_runtime} for both")
        if self.engine_images and "bwrap" in (self.runtime, self.other_runtime):
            raise BadSettings("engine_images: bwrap has no images; unset it, or choose another runtime")
        if self.runtime == "kubernetes":
            for name in ("other_runtime", "agent_ports"):
                if getattr(self, name) is not None:
                    raise BadSettings(f"{name}: agents of a cluster cannot have it; unset it")
            if self.peer_address is None and not self.database_url.reveal().startswith("sqlite"):
                raise BadSettings("peer_address: servers of a cluster pass requests on to each other; set it")
        return self

    @model_validator(mode="after")
    def _check_embedding(self) -> Self:
        if (self.embedding_url is None) != (self.embedding_model is None):
            raise BadSettings("embedding_url: needs embedding_model, and embedding_model needs embedding_url")
        if self.embedding_key is not None and self.embedding_url is None:
            raise BadSettings("embedding_key: needs embedding_url")
        return self

    @model_validator(mode="after")
    def _check_addresses(self) -> Self:
        address = parse_address(self.domain.strip("[]"))
        if address is not None and self.agent_ports is None:
            name = "localhost" if address.is_loopback else f"{re.sub('[.:]', '-', address.exploded)}.sslip.io"
            raise BadSettings(
                f"domain: {address} is an IP address, below which agents cannot have names. Use {name}, which means "
                "the same address and has names, or give each agent a port with ROOST_AGENT_PORTS=9000-9099."
            )
        if self.agent_ports is not None and not {self.port, self.public_port}.isdisjoint(self.agent_ports):
            raise BadSettings("agent_ports: must not contain the port of the server itself")
        return self

    @model_validator(mode="after")
    def _refuse_unsafe(self) -> Self:
        if not self.is_local and self.public_scheme == "http" and self.allow_plain_http == "false":
            raise BadSettings(
                f"host: {self.host} can be reached from outside, and tokens would travel without TLS. Put a TLS "
                "proxy in front and set ROOST_PUBLIC_SCHEME=https, or accept the risk with ROOST_ALLOW_PLAIN_HTTP=true."
            )
        return self

    @model_validator(mode="after")
    def _check_tls(self) -> Self:
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise BadSettings("tls_certificate: needs tls_key, and tls_key needs tls_certificate")
        if not self.tls:
            return self
        if not self.is_local:
            raise BadSettings(f"host: must be a loopback address with tls, got {self.host}; Caddy listens on tls_host")
        if self.public_scheme != "https":
            raise BadSettings("public_scheme: must be https with tls")
        if self.agent_ports is not None:
            raise BadSettings("agent_ports: not with tls, which serves names; end TLS for all ports in another proxy")
        if self.domain == "localhost" and self.tls_certificate is None:
            raise BadSettings(
                "domain: no authority certifies localhost. Give a domain of yours with --domain, or a certificate with "
                "ROOST_TLS_CERTIFICATE and ROOST_TLS_KEY."
            )
        return self
