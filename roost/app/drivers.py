"""Creates the drivers that the settings name, for servers and the command line."""

import stat
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from roost import migrations
from roost.app.data_folder import check_stores, record_stores
from roost.core.db import Database
from roost.drivers.blob.bucket import open_bucket
from roost.drivers.blob.contract import BlobStore, BlobStoreFailed
from roost.drivers.blob.folder_store import FolderStore
from roost.drivers.chat_platform.contract import ChatPlatform
from roost.drivers.chat_platform.platforms import DiscordPlatform, SlackPlatform, TelegramPlatform
from roost.drivers.dns.contract import DnsResolver
from roost.drivers.dns.dnspython import DnspythonResolver
from roost.drivers.embedding.contract import EmbeddingModel
from roost.drivers.embedding.minilm import MiniLMModel
from roost.drivers.embedding.openai import OpenAIEmbeddingModel
from roost.drivers.engine.contract import Engine, Progress
from roost.drivers.engine.hermes.driver import Hermes
from roost.drivers.engine.openclaw.driver import OpenClaw
from roost.drivers.facilitator.contract import Facilitator
from roost.drivers.facilitator.x402_client import X402Facilitator
from roost.drivers.git.contract import GitRepositories
from roost.drivers.git.local_folder import LocalRepository
from roost.drivers.git.remote import SandboxedRemotes
from roost.drivers.git.remote_contract import RemoteRepositories
from roost.drivers.git.repositories import SandboxedRepositories
from roost.drivers.image.contract import ImageRenderer
from roost.drivers.image.pillow import PillowRenderer
from roost.drivers.model.anthropic.driver import AnthropicUpstream
from roost.drivers.model.contract import ModelSettings, ModelUpstream
from roost.drivers.model.openai import OpenAIUpstream
from roost.drivers.model.scripted import ScriptedUpstream
from roost.drivers.network.contract import PublicNetwork
from roost.drivers.network.kubo import KuboNetwork, kubo_version
from roost.drivers.network.none import NoNetwork
from roost.drivers.network.trustless import TrustlessNetwork
from roost.drivers.runtime.bwrap.driver import BwrapRuntime
from roost.drivers.runtime.bwrap.sandbox import BwrapSandbox
from roost.drivers.runtime.contract import Runtime
from roost.drivers.text_extractor.contract import TextExtractor
from roost.drivers.text_extractor.sandboxed import SandboxedExtractor
from roost.net.addresses import Address
from roost.net.dialer import PublicDialer
from roost.net.guarded_transport import GuardedTransport, TransportFactory, check_url
from roost.net.host_port import parse_host_port
from roost.net.policy import EgressPolicy
from roost.settings import BadSettings, Settings


def ensure_data_folder(settings: Settings) -> Path:
    """Return the data folder, created if it is missing and closed to other users. Raises BadSettings if that fails."""
    try:
        settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        mode = settings.data.stat().st_mode
        if mode & 0o077 and not mode & stat.S_ISVTX:  # never close a folder like /tmp
            settings.data.chmod(0o700)
    except OSError as error:
        raise BadSettings(f"data: {settings.data} cannot be used as the data folder: {error.strerror}") from None
    return settings.data


def open_database(settings: Settings) -> Database:
    """Open the deployment's database and migrate it to this version. Raises BadSettings if it is not the folder's."""
    ensure_data_folder(settings)
    check_stores(settings)
    db = Database(settings.database_url.reveal())
    migrations.upgrade_database(db)
    record_stores(settings)
    return db


def create_engines(settings: Settings) -> Sequence[Engine]:
    """Return all engines, the default first."""
    return (OpenClaw(settings.engines), Hermes(settings.engines))


def create_runtime(settings: Settings, engines: Sequence[Engine]) -> Runtime:
    """Return the runtime that the settings name, which finds the software of `engines`."""
    installed = {engine.id: engine for engine in engines}
    return BwrapRuntime(settings.data, lambda engine: installed[engine.id].folders(engine.version))


def create_git_repositories(settings: Settings) -> GitRepositories:
    """Return the Git repositories of agents, on which Git runs in sandboxes of this machine."""
    return SandboxedRepositories(settings.data / "git", BwrapSandbox(settings.data))


def create_remote_repositories(
    settings: Settings, policy: EgressPolicy, transports: TransportFactory
) -> RemoteRepositories:
    """Return the Git repositories that tenants name by URL, reached within the operator's rules."""
    folder = settings.data / "fetched"
    return SandboxedRemotes(folder, BwrapSandbox(settings.data), transports, partial(check_url, policy))


def create_local_repository(folder: Path) -> RemoteRepositories:
    """Return a folder of this machine in the place of a repository."""
    return LocalRepository(folder)


def create_upstream(settings: ModelSettings, transport: GuardedTransport | None = None) -> ModelUpstream:
    driver = OpenAIUpstream if settings.api == "openai" else AnthropicUpstream
    return driver(settings, transport=transport)


def create_blob_store(settings: Settings) -> BlobStore:
    """Return the blob store that the settings name. Raises BadSettings."""
    if "://" not in settings.blobs:
        return FolderStore(ensure_data_folder(settings) / settings.blobs)
    try:
        return open_bucket(settings.blobs)
    except BlobStoreFailed as error:
        raise BadSettings(f"blobs: {error}") from None


async def describe_network(settings: Settings) -> str:
    """Describe the public network that the settings name. Raises SourceFailed, NetworkRefused."""
    match settings.network:
        case "none":
            return "none; pins by CID find only content of this server"
        case "trustless":
            return f"gateways: {', '.join(settings.network_urls)}"
        case "kubo":
            return f"kubo {await kubo_version(settings.kubo_api, settings.kubo_auth)} at {settings.kubo_api}"


def create_network(settings: Settings, dialer: PublicDialer, transports: TransportFactory) -> PublicNetwork:
    """Return the public IPFS network that the settings name."""
    tenant_transport = partial(transports, "network")

    async def locate(host: str, port: int) -> tuple[Sequence[Address], int]:
        return await dialer.resolve("network", parse_host_port(f"[{host}]" if ":" in host else host, port))

    match settings.network:
        case "none":
            return NoNetwork()
        case "trustless":
            return TrustlessNetwork(settings.network_urls, tenant_transport)
        case "kubo":
            http = TrustlessNetwork((), tenant_transport)
            return KuboNetwork(settings.kubo_api, settings.kubo_auth, http, locate, dialer.policy.admits_address)


async def prepare_engine(settings: Settings, engine: Engine, version: str, progress: Progress) -> None:
    """Add to a newly installed engine what a start does not need."""
    if isinstance(engine, OpenClaw):
        await engine.complete(version, create_runtime(settings, [engine]), progress)


def settings_for_port(settings: Settings, port: int, tls_port: int | None = None) -> Settings:
    """Return the settings of a server that listens on these ports, which the system may have chosen."""
    configured, actual = (settings.port, port) if tls_port is None else (settings.tls_port, tls_port)
    public = actual if settings.public_port in (0, configured) else settings.public_port
    return settings.model_copy(update={"port": port, "tls_port": tls_port or settings.tls_port, "public_port": public})


@dataclass(frozen=True)
class StorageDrivers:
    blobs: BlobStore
    facilitator: Facilitator | None
    images: ImageRenderer
    text_extractor: TextExtractor
    embedding_model: EmbeddingModel


@dataclass(frozen=True)
class Drivers:
    runtime: Runtime
    engines: Sequence[Engine]
    upstreams: Sequence[ModelUpstream]
    chat_platforms: Sequence[ChatPlatform]
    git: GitRepositories
    dns: DnsResolver
    storage: StorageDrivers


def create_drivers(
    settings: Settings,
    *,
    runtime: Runtime | None = None,
    engines: Sequence[Engine] | None = None,
    text_extractor: TextExtractor | None = None,
    embedding_model: EmbeddingModel | None = None,
) -> Drivers:
    """Return the drivers that the settings name, except for those given. Raises BadSettings.

    Without settings for them, a scripted stand-in answers for models, and the embedding model is that of Roost.
    """
    engines, create_sandbox = engines or create_engines(settings), partial(BwrapSandbox, settings.data)
    facilitator, embedding = settings.facilitator_url, settings.embedding
    return Drivers(
        runtime=runtime or create_runtime(settings, engines),
        engines=engines,
        upstreams=[create_upstream(upstream) for upstream in settings.upstreams] or [ScriptedUpstream()],
        chat_platforms=(
            TelegramPlatform(settings.telegram_api),
            SlackPlatform(settings.slack_api),
            DiscordPlatform(settings.discord_api),
        ),
        git=create_git_repositories(settings),
        dns=DnspythonResolver(settings.dns_servers),
        storage=StorageDrivers(
            blobs=create_blob_store(settings),
            facilitator=None if facilitator is None else X402Facilitator(facilitator, settings.facilitator_token),
            images=PillowRenderer(create_sandbox()),
            text_extractor=text_extractor or SandboxedExtractor(create_sandbox()),
            embedding_model=embedding_model
            or (MiniLMModel(create_sandbox()) if embedding is None else OpenAIEmbeddingModel(embedding)),
        ),
    )
