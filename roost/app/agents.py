"""The agents' wing, connected: what agents have, and the stories of their lives."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import httpx2
from starlette.types import ASGIApp

from roost.agents.channels.book import Book
from roost.agents.channels.intake import Intake
from roost.agents.channels.service import Channels
from roost.agents.devices.service import Devices
from roost.agents.egress.dialer import Dialer
from roost.agents.egress.proxy import EgressProxy
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
from roost.app.ground import Ground
from roost.app.outside import Drivers, bake, data_folder, messengers, upstream
from roost.config import Settings
from roost.core.sensitive import Sensitive
from roost.drivers.model.contract import ModelSettings, Upstream
from roost.drivers.runtime.contract import Limits, RuntimeFailed
from roost.hosts.relay import Relays
from roost.identity.caller import Plan


class AgentsWing:
    """Made in two steps: the application stands on the rooms, and the ways out of boxes lead into the application."""

    def __init__(self, ground: Ground, outside: Drivers) -> None:
        settings, db, seal = ground.settings, ground.db, ground.seal
        self._ground = ground
        self._outside = outside
        self.roster = Roster(db, seal, {Plan.FREE: settings.quota_free, Plan.PAID: settings.quota_paid})
        self.secrets, self._delivery = Secrets(db, seal, self.roster), Delivery(db, seal)
        self._book = Book(db, seal, self.roster)
        self.reach = Reach(self.roster, outside.runtime, outside.engines)
        own = own_models(self.secrets, Dialer(ground.policy, ground.resolver), settings.ca_file)
        self.models = ModelGateway(db, outside.upstreams, own=own)
        self.secrets.subscribe(self.models.changed)

    def connect(self, app: ASGIApp) -> None:
        """Let boxes out into `app` and to the internet, and live."""
        ground, outside, settings = self._ground, self._outside, self._ground.settings
        db, queue, origin = ground.db, ground.queue, ground.addresses.agent_origin
        self.relays = Relays(outside.runtime, app, EgressProxy(policy=ground.policy, resolver=ground.resolver))
        book, intake = self._book, Intake(messengers(settings))
        equip = Equip(self.models, self._delivery, book)
        starter = GatewayStarter(self.roster, self.reach, origin, equip)
        versions = Versions(self.roster, self.reach, partial(bake, settings))
        scripts = Scripts(db, queue, self.roster, self.reach, origin, equip)
        details = Details(self.roster, self.reach, ground.gateways, self.secrets, origin, scripts)
        self.launch = Launch(db, queue, self.roster, ground.gateways, self.reach, self.secrets, intake, book)
        restart = Restart(db, queue, self.roster, self.reach, details, versions)
        teardown = Teardown(db, queue, self.roster, ground.gateways, outside.runtime, self.relays)
        self.reconciler = Reconciler(db, queue, self.roster, self.reach, outside.runtime, self.relays, starter)
        trusted = trust.establish(settings.ca_file, data_folder(settings) / "trust")
        bounds = _limits(settings)
        start = Start(
            self.roster, self.reach, outside.runtime, self.relays, starter, versions, scripts, bounds, trusted
        )
        update = Update(db, queue, self.roster, self.reach, versions, start)
        queue.handle(lifecycle.START, start)
        queue.handle(lifecycle.UPDATE, update.handle)
        queue.handle(SCRIPTS_RUN, scripts.handle)
        queue.handle(lifecycle.DELETE, teardown.handle, retries=10)
        for room in (
            self.secrets,
            self.reach,
            self.models,
            details,
            self.launch,
            restart,
            teardown,
            update,
            versions,
            scripts,
            Channels(db, book, intake, self.roster, self.reach, restart),
            Workspace(self.roster, self.reach, self._delivery.variables),
            Tasks(self.reach),
            Devices(self.reach),
            RuntimeConfig(self.roster, self.reach, starter.setup, restart),
            Logs(self.roster, self.reach, self._private),
            SelfService(self.roster, details, ground.platform, origin),
        ):
            ground.rooms.add(room)

    async def start(self) -> None:
        """Adopt the agents that run, start those that do not. Raises RuntimeFailed when no container can be started."""
        capabilities = await self._outside.runtime.probe()
        if not capabilities.usable:
            raise RuntimeFailed(f"No container can be started here: {capabilities.error}")
        await self.models.start()
        await self.reconciler.start()

    async def stop(self) -> None:
        """End all agents, cleanly; the next start brings them back."""
        await self.reconciler.stop()
        await self.relays.close_all()
        await self.models.stop()

    async def _private(self, agent_id: str) -> Sequence[Sensitive[str]]:
        """What nobody reads in an agent's logs, by value."""
        return [
            await self._ground.gateways.read(agent_id),
            await self.roster.internal_token(agent_id),
            *await self._delivery.hidden(agent_id),
            *await self._book.hidden(agent_id),
        ]


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
        return upstream(settings, GuardedTransport(dialer, agent_id, authorities))

    return Own(settings, connect)


def _limits(settings: Settings) -> Limits:
    return Limits(memory_bytes=settings.agent_memory, cpus=settings.agent_cpus, pids=settings.agent_pids)
