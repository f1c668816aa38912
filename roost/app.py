"""The composition root: the one module that knows every room. It builds a server from settings and drivers."""

import socket
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import httpx2
from prometheus_client import CollectorRegistry, Counter, Histogram

from roost import migrations
from roost.agents.channels.book import Book
from roost.agents.channels.intake import Intake
from roost.agents.channels.service import Channels
from roost.agents.egress.dialer import Dialer
from roost.agents.devices.service import Devices
from roost.agents.egress.policy import Policy
from roost.agents.egress.proxy import EgressProxy
from roost.agents.egress.resolver import SystemResolver
from roost.agents.egress.transport import GuardedTransport
from roost.agents.lifecycle import model as lifecycle
from roost.agents.lifecycle import trust
from roost.agents.lifecycle.detail import Details
from roost.agents.lifecycle.equip import Equip
from roost.agents.lifecycle.gateway import GatewayStarter
from roost.agents.lifecycle.launch import Launch
from roost.agents.lifecycle.reconcile import Reconciler
from roost.agents.lifecycle.restart import Restart
from roost.agents.lifecycle.start import Start
from roost.agents.lifecycle.teardown import Teardown
from roost.agents.lifecycle.update import Update
from roost.agents.logs.service import Logs
from roost.agents.models import providers
from roost.agents.models.model import Own
from roost.agents.models.service import ModelGateway
from roost.agents.platform.service import SelfService
from roost.agents.roster.reach import Reach
from roost.agents.roster.service import Roster
from roost.agents.runtime_config.service import RuntimeConfig
from roost.agents.scripts.model import RUN as SCRIPTS_RUN
from roost.agents.scripts.service import Scripts
from roost.agents.secrets.delivery import Delivery
from roost.agents.secrets.service import Secrets
from roost.agents.tasks.service import Tasks
from roost.agents.versions.service import Versions
from roost.agents.workspace.service import Workspace
from roost.config import BadSettings, Settings
from roost.core.db import Database
from roost.core.sensitive import Sensitive
from roost.drivers.engine.contract import Engine, Progress
from roost.drivers.engine.hermes.driver import Hermes
from roost.drivers.engine.openclaw.driver import OpenClaw
from roost.drivers.messenger.contract import Messenger
from roost.drivers.messenger.platforms import Discord, Slack, Telegram
from roost.drivers.model.anthropic.driver import Anthropic
from roost.drivers.model.contract import ModelSettings, Upstream
from roost.drivers.model.openai import OpenAI
from roost.drivers.model.scripted import Scripted
from roost.drivers.runtime.bwrap.driver import BwrapRuntime
from roost.drivers.runtime.contract import Limits, Runtime, RuntimeFailed
from roost.hosts.address import Addresses
from roost.hosts.edge.gate import Gate
from roost.hosts.edge.protocol import edge_protocol
from roost.hosts.front import front
from roost.hosts.health import Check
from roost.hosts.mount import application
from roost.hosts.relay import Relays
from roost.hosts.server import HttpServer
from roost.identity.caller import Plan
from roost.identity.door import Door
from roost.identity.gateways import Gateways
from roost.identity.keys import Keys
from roost.identity.platform import Platform
from roost.keyring import sealer
from roost.web import access
from roost.web.access import Observe, Passage
from roost.web.provide import Rooms
from roost.work import Work

_STOP_GRACE = 2.0


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
    migrations.upgrade(db)
    return db


def engines(settings: Settings) -> Sequence[Engine]:
    """Every engine that there is, the default first."""
    return (OpenClaw(settings.engines), Hermes(settings.engines))


def runtime(settings: Settings) -> Runtime:
    return BwrapRuntime(settings.data)


def upstreams(settings: Settings) -> Sequence[Upstream]:
    """The configured sources of models; the stand-in when there is none."""
    return [_upstream(one) for one in settings.upstreams] or [Scripted()]


def _upstream(settings: ModelSettings, transport: GuardedTransport | None = None) -> Upstream:
    driver = OpenAI if settings.api == "openai" else Anthropic
    return driver(settings, transport=transport)


def own_models(secrets: Secrets, dialer: Dialer, ca_file: Path | None) -> Own:
    """The model providers whose keys agents have, reached where the agents themselves may go."""
    authorities = httpx2.create_ssl_context()
    if ca_file is not None:
        authorities.load_verify_locations(ca_file)

    async def settings(agent_id: str) -> Sequence[ModelSettings]:
        keys = await secrets.providers(agent_id)
        found = (providers.settings(key.provider, key.name, key.value, key.base_url) for key in keys)
        return [one for one in found if one is not None]

    def connect(agent_id: str, settings: ModelSettings) -> Upstream:
        return _upstream(settings, GuardedTransport(dialer, agent_id, authorities))

    return Own(settings, connect)


def messengers(settings: Settings) -> Sequence[Messenger]:
    """The platforms that are asked about the tokens of bots."""
    return (Telegram(settings.telegram_api), Slack(settings.slack_api), Discord(settings.discord_api))


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
    upstreams: Sequence[Upstream]


def drivers(settings: Settings) -> Drivers:
    """The drivers that the settings name."""
    return Drivers(runtime(settings), engines(settings), upstreams(settings))


class Roost:
    """A server: every room, connected. `start` it before it listens, `stop` it when it does not listen any more."""

    def __init__(self, settings: Settings, outside: Drivers) -> None:
        self.settings = settings
        self.runtime = outside.runtime
        self.addresses = Addresses(settings.domain, settings.public_port, settings.public_scheme)
        self.registry = CollectorRegistry()
        self.db = open_database(settings)
        seal = sealer(settings, self.db)
        self.queue = Work(self.db, owner=f"{socket.gethostname()}:{settings.data}"[-100:])
        self.keys, self.gateways = Keys(self.db, seal), Gateways(self.db, seal)
        self.roster = Roster(self.db, seal, {Plan.FREE: settings.quota_free, Plan.PAID: settings.quota_paid})
        self.secrets, self.delivery = Secrets(self.db, seal, self.roster), Delivery(self.db, seal)
        self.reach = Reach(self.roster, self.runtime, outside.engines)
        self.resolver = SystemResolver()
        policy = Policy(
            allow_private=settings.egress_allow,
            deny_hosts=settings.egress_deny_hosts,
            hosts=settings.egress_hosts,
        )
        trusted = trust.establish(settings.ca_file, data_folder(settings) / "trust")
        own = own_models(self.secrets, Dialer(policy, self.resolver), settings.ca_file)
        self.models = ModelGateway(self.db, outside.upstreams, own=own)
        self.secrets.subscribe(self.models.changed)
        rooms = Rooms()
        self.platform = Platform(self.db, seal, self.gateways)
        door = Door(self.keys, self.gateways, self.platform)
        served = application(rooms, self.addresses.agents_url, self._checks(), self.registry)
        self._observed = self._count()
        self.asgi = front(served, self.addresses, door.anyone, observe=self._observed)
        policy = Policy(
            allow_private=settings.egress_allow,
            deny_hosts=settings.egress_deny_hosts,
            hosts=settings.egress_hosts,
        )
        self.relays = Relays(self.runtime, self.asgi, EgressProxy(policy=policy, resolver=self.resolver))
        origin = self.addresses.agent_origin
        book, intake = Book(self.db, seal, self.roster), Intake(messengers(settings))
        equip = Equip(self.models, self.delivery, book)
        starter = GatewayStarter(self.roster, self.reach, origin, equip)
        versions = Versions(self.roster, self.reach, partial(bake, settings))
        scripts = Scripts(self.db, self.queue, self.roster, self.reach, origin, equip)
        self.details = Details(self.roster, self.reach, self.gateways, self.secrets, origin, scripts)
        self.launch = Launch(self.db, self.queue, self.roster, self.gateways, self.reach, self.secrets, intake, book)
        restart = Restart(self.db, self.queue, self.roster, self.reach, self.details, versions)
        teardown = Teardown(self.db, self.queue, self.roster, self.gateways, self.runtime, self.relays)
        self.reconciler = Reconciler(self.db, self.queue, self.roster, self.reach, self.runtime, self.relays, starter)
        trusted = trust.establish(settings.ca_file, data_folder(settings) / "trust")
        bounds = _limits(settings)
        start = Start(self.roster, self.reach, self.runtime, self.relays, starter, versions, scripts, bounds, trusted)
        update = Update(self.db, self.queue, self.roster, self.reach, versions, start)
        self.queue.handle(lifecycle.START, start)
        self.queue.handle(lifecycle.UPDATE, update.handle)
        self.queue.handle(SCRIPTS_RUN, scripts.handle)
        self.queue.handle(lifecycle.DELETE, teardown.handle, retries=10)
        for room in (
            door,
            self.gateways,
            self.secrets,
            self.reach,
            self.models,
            self.details,
            self.launch,
            restart,
            teardown,
            update,
            versions,
            scripts,
            Channels(self.db, book, intake, self.roster, self.reach, restart),
            Workspace(self.roster, self.reach, self.delivery.variables),
            Tasks(self.reach),
            Devices(self.reach),
            RuntimeConfig(self.roster, self.reach, starter.setup, restart),
            Logs(self.roster, self.reach, self._private),
            SelfService(self.roster, self.details, self.platform, origin),
        ):
            rooms.add(room)
        self.edge = edge_protocol(self._gate(door))
        self.http = HttpServer(self.asgi, self.edge)

    async def start(self) -> None:
        """Adopt the agents that run, start those that do not. Raises RuntimeFailed when no container can be started."""
        self.capabilities = await self.runtime.probe()
        if not self.capabilities.usable:
            raise RuntimeFailed(f"No container can be started here: {self.capabilities.error}")
        await self.models.start()
        await self.reconciler.start()
        await self.queue.start()

    async def stop(self) -> None:
        """End all agents, cleanly; the next start brings them back."""
        self.edge.traffic.close()
        await self.queue.stop(grace=_STOP_GRACE)  # what is cut off is finished by the next start
        await self.reconciler.stop()
        await self.relays.close_all()
        await self.models.stop()
        self.resolver.close()
        self.db.close()

    async def _private(self, agent_id: str) -> Sequence[Sensitive[str]]:
        """What nobody reads in an agent's logs, by value."""
        return [
            await self.gateways.read(agent_id),
            await self.roster.internal_token(agent_id),
            *await self.delivery.hidden(agent_id),
        ]

    def _checks(self) -> dict[str, Check]:
        async def containers() -> None:
            await self.runtime.list()

        return {"database": self.db.ping, "containers": containers}

    def _gate(self, door: Door) -> Gate:
        return Gate(
            addresses=self.addresses,
            admit=door.holder,
            dial=self.reach.gateway,
            credential=self.reach.credential,
            subscribe=self.gateways.subscribe,
            observe=self._observed,
        )

    def _count(self) -> Observe:
        """Every request that is over is a line in the log and a number for the operator."""
        requests = Counter("roost_requests", "Requests", ["to", "status"], registry=self.registry)
        seconds = Histogram("roost_request_seconds", "Duration of requests", ["to"], registry=self.registry)

        def observe(passage: Passage) -> None:
            to = "platform" if passage.agent_id is None else "agent"
            requests.labels(to, str(passage.status)).inc()
            seconds.labels(to).observe(passage.seconds)
            access.write(passage)

        return observe


def _limits(settings: Settings) -> Limits:
    return Limits(memory_bytes=settings.agent_memory, cpus=settings.agent_cpus, pids=settings.agent_pids)
