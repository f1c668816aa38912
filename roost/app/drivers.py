"""Creates the drivers that the settings name, for servers and the command line."""

import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from roost import __version__, migrations
from roost.app.data_folder import check_stores, load_host_identity, record_stores
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
from roost.drivers.git.backing_store import BucketStore
from roost.drivers.git.contract import GitRepositories
from roost.drivers.git.local_folder import LocalRepository
from roost.drivers.git.manifest_contract import ManifestStore
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
from roost.drivers.runtime.contract import Capabilities, EngineVersion, Runtime
from roost.drivers.runtime.docker.driver import DockerRuntime
from roost.drivers.runtime.docker.engine_api import EngineApi
from roost.drivers.runtime.docker.images import DockerImages
from roost.drivers.runtime.kubernetes.api import KubernetesApi
from roost.drivers.runtime.kubernetes.credentials import KubernetesMisconfigured, load_kubeconfig, load_service_account
from roost.drivers.runtime.kubernetes.driver import KubernetesRuntime
from roost.drivers.runtime.kubernetes.plan import ClusterOptions
from roost.drivers.runtime.landlock.sandbox import LandlockSandbox
from roost.drivers.sandbox.contract import Sandbox
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


def open_database(
    settings: Settings, report: Callable[[str | None, str], object] = lambda _before, _after: None
) -> Database:
    """Open the deployment's database and migrate it to this version. Raises BadSettings if it is not the folder's.

    report: called with the revisions before and after, None before for a new database.
    """
    ensure_data_folder(settings)
    check_stores(settings)
    db = Database(settings.database_url.reveal())
    before, after = migrations.upgrade_database(db)
    report(before, after)
    record_stores(settings)
    return db


def create_engines(settings: Settings) -> Sequence[Engine]:
    """Return all engines that agents can have, the default first. Raises BadSettings."""
    kinds, images = (OpenClaw, Hermes), settings.engine_images
    if unknown := images.keys() - {kind.id for kind in kinds}:
        raise BadSettings(f"engine_images: there is no engine {min(unknown)}")
    if settings.runtime == "kubernetes":
        images = images or {kind.id: (kind.default_version,) for kind in kinds}
        kinds = [kind for kind in kinds if kind.id in images]  # a cluster has no use for software of this machine
    return [kind(settings.engines, images.get(kind.id, ())) for kind in kinds]


def create_runtime(settings: Settings, engines: Sequence[Engine], name: str = "") -> Runtime:
    """Return a runtime, by default that of new agents, which finds the software of `engines`."""
    installed = {engine.id: engine for engine in engines}

    def folders(engine: EngineVersion) -> Mapping[str, Path]:
        return installed[engine.id].folders(engine.version)

    if (name or settings.runtime) == "bwrap":
        return BwrapRuntime(settings.data, folders)
    if (name or settings.runtime) == "kubernetes":
        return _create_kubernetes_runtime(settings)
    api = EngineApi(settings.docker_socket)
    images = DockerImages(api, folders, settings.docker_image, __version__, settings.docker_repository)
    identity = load_host_identity(ensure_data_folder(settings))
    return DockerRuntime(identity.id, settings.data, api, images, settings.docker_oci_runtime)


def _create_kubernetes_runtime(settings: Settings) -> Runtime:
    """Return the runtime of a cluster, without a request to it. Raises BadSettings."""
    try:
        config, namespace = settings.kubernetes_config, settings.kubernetes_namespace
        access = (
            load_kubeconfig(config, namespace) if config else load_service_account(settings.kubernetes_api, namespace)
        )
    except KubernetesMisconfigured as problem:
        raise BadSettings(f"runtime: {problem.message}") from None
    repository = f"{settings.kubernetes_image_repository.rstrip('/')}/" if settings.kubernetes_image_repository else ""
    options = ClusterOptions(
        name=settings.kubernetes_name,
        image=f"{repository}roost-{{engine}}:{{version}}",
        version=__version__,
        storage_class=settings.kubernetes_storage_class,
        storage_bytes=settings.kubernetes_storage_size,
        claim_access_mode=settings.kubernetes_claim_access_mode,
        host_users=False if settings.kubernetes_user_namespaces else None,
        pull_policy=settings.kubernetes_pull_policy,
        runtime_class=settings.kubernetes_runtime_class,
        pull_secrets=settings.kubernetes_image_pull_secrets,
        node_selector=settings.kubernetes_node_selector,
        tolerations=settings.kubernetes_tolerations,
        priority_class=settings.kubernetes_priority_class,
        user=settings.kubernetes_user,
        server_labels=settings.kubernetes_server_labels,
        server_namespace=settings.kubernetes_server_namespace,
        server_networks=[str(network) for network in settings.kubernetes_server_networks],
        accepts_open_network=settings.kubernetes_accept_open_network,
        uses_exec=settings.kubernetes_exec,
    )
    return KubernetesRuntime(KubernetesApi(access, __version__), options, ensure_data_folder(settings))


def create_sandbox(settings: Settings) -> Sandbox:
    """Return sandboxes of this machine, of the kind that the settings name."""
    return LandlockSandbox(settings.data) if settings.sandbox == "landlock" else BwrapSandbox(settings.data)


def create_git_repositories(
    settings: Settings, blobs: BlobStore | None = None, manifests: ManifestStore | None = None
) -> GitRepositories:
    """Return the Git repositories of agents, on which Git runs in sandboxes of this machine.

    With a blob store and manifests, they are kept there, and their folder is a cache.
    """
    folder, sandbox = settings.data / "git", create_sandbox(settings)
    if blobs is None or manifests is None:
        return SandboxedRepositories(folder, sandbox)
    return SandboxedRepositories(folder, sandbox, partial(BucketStore, blobs=blobs, manifests=manifests))


def create_remote_repositories(
    settings: Settings, policy: EgressPolicy, transports: TransportFactory
) -> RemoteRepositories:
    """Return the Git repositories that tenants name by URL, reached within the operator's rules."""
    folder = settings.data / "fetched"
    return SandboxedRemotes(folder, create_sandbox(settings), transports, partial(check_url, policy))


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
    runtime = create_runtime(settings, [engine])
    if isinstance(engine, OpenClaw):
        await engine.complete(version, runtime, progress)
    await prepare_software(runtime, EngineVersion(engine.id, version), progress)


async def prepare_software(runtime: Runtime, engine: EngineVersion | None, progress: Progress) -> None:
    """Do what takes minutes before the first start of an agent with an engine. Raises Problem."""
    if isinstance(runtime, DockerRuntime):
        await runtime.images.ensure(engine, progress)


async def probe_runtime(settings: Settings, engines: Sequence[Engine], name: str) -> Capabilities:
    """Start a container in a runtime, and return what it found."""
    runtime = create_runtime(settings, engines, name)
    try:
        return await runtime.probe()
    finally:
        await close_runtimes([runtime])


async def close_runtimes(runtimes: Sequence[Runtime]) -> None:
    """End what runtimes do for this process; their containers go on."""
    for runtime in runtimes:
        if isinstance(runtime, KubernetesRuntime):
            await runtime.close()


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
    """`other_runtimes` are those that agents can be moved to from `runtime`, and from which they can be moved back."""

    runtime: Runtime
    engines: Sequence[Engine]
    upstreams: Sequence[ModelUpstream]
    chat_platforms: Sequence[ChatPlatform]
    git: GitRepositories
    dns: DnsResolver
    storage: StorageDrivers
    other_runtimes: Sequence[Runtime] = ()

    @property
    def runtimes(self) -> Sequence[Runtime]:
        return (self.runtime, *self.other_runtimes)


def create_drivers(
    settings: Settings,
    *,
    runtime: Runtime | None = None,
    other_runtimes: Sequence[Runtime] | None = None,
    engines: Sequence[Engine] | None = None,
    text_extractor: TextExtractor | None = None,
    embedding_model: EmbeddingModel | None = None,
) -> Drivers:
    """Return the drivers that the settings name, except for those given. Raises BadSettings.

    Without settings for them, a scripted stand-in answers for models, and the embedding model is that of Roost.
    """
    engines = engines or create_engines(settings)
    facilitator, embedding = settings.facilitator_url, settings.embedding
    if other_runtimes is None:
        other = None if runtime else settings.other_runtime
        other_runtimes = [create_runtime(settings, engines, other)] if other else []
    return Drivers(
        runtime=runtime or create_runtime(settings, engines),
        other_runtimes=other_runtimes,
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
            images=PillowRenderer(create_sandbox(settings)),
            text_extractor=text_extractor or SandboxedExtractor(create_sandbox(settings)),
            embedding_model=embedding_model
            or (MiniLMModel(create_sandbox(settings)) if embedding is None else OpenAIEmbeddingModel(embedding)),
        ),
    )
