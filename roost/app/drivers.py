"""The outside world of a server: which drivers the settings name, and how the command line gets at them."""

import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import httpx2

from roost import migrations
from roost.agents.egress.dialer import PublicDialer
from roost.agents.egress.host_port import parse
from roost.agents.egress.policy import EgressPolicy
from roost.agents.egress.transport import GuardedTransport, judge
from roost.config import BadSettings, Settings
from roost.core.db import Database
from roost.drivers.blob.contract import BlobStore, BlobStoreFailed
from roost.drivers.blob.folder_store import FolderStore
from roost.drivers.blob.object_store import ObjectStore
from roost.drivers.chat_platform.contract import ChatPlatform
from roost.drivers.chat_platform.platforms import DiscordPlatform, SlackPlatform, TelegramPlatform
from roost.drivers.engine.contract import Engine, Progress
from roost.drivers.engine.hermes.driver import Hermes
from roost.drivers.engine.openclaw.driver import OpenClaw
from roost.drivers.http_sender.contract import HttpSender
from roost.drivers.http_sender.guarded import GuardedHttpSender
from roost.drivers.model.anthropic.driver import AnthropicUpstream
from roost.drivers.model.contract import ModelSettings, ModelUpstream
from roost.drivers.model.openai import OpenAIUpstream
from roost.drivers.model.scripted import ScriptedUpstream
from roost.drivers.network.contract import PublicNetwork
from roost.drivers.network.kubo import Address, KuboNetwork
from roost.drivers.network.kubo import version as kubo_version
from roost.drivers.network.none import NoNetwork
from roost.drivers.network.trustless import TrustlessNetwork
from roost.drivers.runtime.bwrap.driver import BwrapRuntime
from roost.drivers.runtime.contract import Runtime


def data_folder(settings: Settings) -> Path:
    """The data folder, made when it is missing. Raises BadSettings when it cannot be one."""
    try:
        settings.data.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadSettings(f"data: {settings.data} cannot be a folder of ours: {error.strerror}") from None
    return settings.data


def open_database(settings: Settings) -> Database:
    """The deployment's database, migrated to this version."""
    data_folder(settings)
    db = Database(settings.database_url.reveal())
    migrations.upgrade_database(db)
    return db


def engines(settings: Settings) -> Sequence[Engine]:
    """Every engine that there is, the default first."""
    return (OpenClaw(settings.engines), Hermes(settings.engines))


def runtime(settings: Settings) -> Runtime:
    return BwrapRuntime(settings.data)


def upstreams(settings: Settings) -> Sequence[ModelUpstream]:
    """The configured sources of models; the stand-in when there is none."""
    return [upstream(one) for one in settings.upstreams] or [ScriptedUpstream()]


def upstream(settings: ModelSettings, transport: GuardedTransport | None = None) -> ModelUpstream:
    driver = OpenAIUpstream if settings.api == "openai" else AnthropicUpstream
    return driver(settings, transport=transport)


def messengers(settings: Settings) -> Sequence[ChatPlatform]:
    """The platforms that are asked about the tokens of bots."""
    return (
        TelegramPlatform(settings.telegram_api),
        SlackPlatform(settings.slack_api),
        DiscordPlatform(settings.discord_api),
    )


def blobs(settings: Settings) -> BlobStore:
    """Where the bytes of files are kept. Raises BadSettings."""
    if "://" not in settings.blobs:
        return FolderStore(data_folder(settings) / settings.blobs)
    try:
        return ObjectStore(settings.blobs)
    except BlobStoreFailed as error:
        raise BadSettings(f"blobs: {error}") from None


def guarded(settings: Settings, dialer: PublicDialer, subject: str) -> Callable[[], GuardedTransport]:
    """Makes transports to addresses that tenants name; names are resolved on behalf of `subject`."""
    trust = _trust(settings)
    return lambda: GuardedTransport(dialer, subject, trust)


async def describe_network(settings: Settings) -> str:
    """Whom the settings name for content of others. Raises SourceFailed, Refused."""
    match settings.network:
        case "none":
            return "none; pins by CID find what is on this server"
        case "trustless":
            return f"gateways: {', '.join(settings.network_urls)}"
        case "kubo":
            return f"kubo {await kubo_version(settings.kubo_api, settings.kubo_auth)} at {settings.kubo_api}"


def courier(settings: Settings, policy: EgressPolicy, dialer: PublicDialer) -> HttpSender:
    """Who brings messages to addresses that tenants name; each tenant's names are resolved on its own behalf."""
    trust = _trust(settings)

    def outwards(tenant_id: str) -> GuardedTransport:
        return GuardedTransport(dialer, f"tenant/{tenant_id}", trust)

    return GuardedHttpSender(outwards, partial(judge, policy))


def _trust(settings: Settings) -> ssl.SSLContext:
    trust = httpx2.create_ssl_context()
    if settings.ca_file is not None:
        trust.load_verify_locations(settings.ca_file)
    return trust


def network(settings: Settings, dialer: PublicDialer, admits: Callable[[Address], bool]) -> PublicNetwork:
    """Where content of others comes from, and whom they ask for ours."""
    outwards = guarded(settings, dialer, "network")

    async def locate(host: str, port: int) -> tuple[Sequence[Address], int]:
        return await dialer.places("network", parse(f"[{host}]" if ":" in host else host, port))

    match settings.network:
        case "none":
            return NoNetwork()
        case "trustless":
            return TrustlessNetwork(settings.network_urls, outwards)
        case "kubo":
            return KuboNetwork(settings.kubo_api, settings.kubo_auth, TrustlessNetwork((), outwards), locate, admits)


async def bake(settings: Settings, engine: Engine, version: str, progress: Progress) -> None:
    """What an engine wants done once in a box after its install, so that it starts faster."""
    if isinstance(engine, OpenClaw):
        await engine.bake(version, runtime(settings), progress)


def at_port(settings: Settings, port: int) -> Settings:
    """The settings of a server that listens on `port`, which the system may have chosen."""
    public = port if settings.public_port in (0, settings.port) else settings.public_port
    return replace(settings, port=port, public_port=public)


@dataclass(frozen=True)
class Drivers:
    """The outside world of one server."""

    runtime: Runtime
    engines: Sequence[Engine]
    upstreams: Sequence[ModelUpstream]


def drivers(settings: Settings) -> Drivers:
    """The drivers that the settings name."""
    return Drivers(runtime(settings), engines(settings), upstreams(settings))
