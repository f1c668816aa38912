"""The agents' wing, connected: what agents have, and the stories of their lives."""

from collections.abc import Sequence
from functools import partial

from starlette.types import ASGIApp

from roost.agents.channels.repository import ChannelRepository
from roost.agents.channels.service import ChannelService
from roost.agents.channels.validator import ChannelValidator
from roost.agents.devices.service import DeviceService
from roost.agents.egress.proxy import EgressProxy
from roost.agents.lifecycle import model as lifecycle
from roost.agents.lifecycle import trusted_authorities
from roost.agents.lifecycle.delete import DeleteWorkflow
from roost.agents.lifecycle.details import AgentDetails
from roost.agents.lifecycle.gateway import GatewayStarter
from roost.agents.lifecycle.launch import LaunchWorkflow
from roost.agents.lifecycle.reconcile import AgentReconciler
from roost.agents.lifecycle.restart import RestartWorkflow
from roost.agents.lifecycle.start import StartWorkflow
from roost.agents.lifecycle.startup_inputs import StartupInputCollector
from roost.agents.lifecycle.update import UpdateWorkflow
from roost.agents.logs.service import LogService
from roost.agents.models import providers
from roost.agents.models.model import AgentProviders
from roost.agents.models.service import ModelGateway
from roost.agents.platform.service import AgentSelfService
from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.repository import AgentRepository
from roost.agents.runtime_config.service import RuntimeConfigService
from roost.agents.scripts.model import RUN as SCRIPTS_RUN
from roost.agents.scripts.service import ScriptService
from roost.agents.secrets.environment import SecretEnvironment
from roost.agents.secrets.service import SecretService
from roost.agents.tasks.service import TaskService
from roost.agents.versions.service import VersionService
from roost.agents.workspace.service import WorkspaceService
from roost.app.core_services import CoreServices
from roost.app.drivers import Drivers, bake, messengers, upstream
from roost.config import Settings
from roost.core.sensitive import Sensitive
from roost.drivers.model.contract import ModelSettings, ModelUpstream
from roost.drivers.runtime.contract import ContainerLimits, RuntimeFailed
from roost.hosts.relay import RelayServer
from roost.identity.caller import Plan
from roost.net.guarded_transport import TransportFactory


class AgentServices:
    """Made in two steps: the application stands on the rooms, and the ways out of boxes lead into the application."""

    def __init__(self, ground: CoreServices, outside: Drivers) -> None:
        settings, db, seal = ground.settings, ground.db, ground.seal
        self._ground = ground
        self._outside = outside
        self.roster = AgentRepository(db, seal, {Plan.FREE: settings.quota_free, Plan.PAID: settings.quota_paid})
        self.secrets, self._delivery = SecretService(db, seal, self.roster), SecretEnvironment(db, seal)
        self._book = ChannelRepository(db, seal, self.roster)
        self.reach = AgentRuntimes(self.roster, outside.runtime, outside.engines)
        own = own_models(self.secrets, ground.transports)
        self.models = ModelGateway(db, outside.upstreams, own=own)
        self.secrets.subscribe(self.models.changed)

    def connect(self, app: ASGIApp) -> None:
        """Let boxes out into `app` and to the internet, and live."""
        ground, outside, settings = self._ground, self._outside, self._ground.settings
        db, queue, origin = ground.db, ground.queue, ground.addresses.agent_origin
        self.relays = RelayServer(outside.runtime, app, EgressProxy(ground.dialer))
        book, intake = self._book, ChannelValidator(messengers(settings))
        equip = StartupInputCollector(self.models, self._delivery, book)
        starter = GatewayStarter(self.roster, self.reach, origin, equip)
        versions = VersionService(self.roster, self.reach, partial(bake, settings))
        scripts = ScriptService(db, queue, self.roster, self.reach, origin, equip)
        details = AgentDetails(self.roster, self.reach, ground.gateways, self.secrets, origin, scripts)
        self.launch = LaunchWorkflow(db, queue, self.roster, ground.gateways, self.reach, self.secrets, intake, book)
        restart = RestartWorkflow(db, queue, self.roster, self.reach, details, versions)
        teardown = DeleteWorkflow(db, queue, self.roster, ground.gateways, outside.runtime, self.relays)
        self.reconciler = AgentReconciler(db, queue, self.roster, self.reach, outside.runtime, self.relays, starter)
        trusted = trusted_authorities.load_authorities(settings.ca_file)
        bounds = _limits(settings)
        start = StartWorkflow(
            self.roster, self.reach, outside.runtime, self.relays, starter, versions, scripts, bounds, trusted
        )
        update = UpdateWorkflow(db, queue, self.roster, self.reach, versions, start)
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
            ChannelService(db, book, intake, self.roster, self.reach, restart),
            WorkspaceService(self.roster, self.reach, self._delivery.get_values),
            TaskService(self.reach),
            DeviceService(self.reach),
            RuntimeConfigService(self.roster, self.reach, starter.setup, restart),
            LogService(self.roster, self.reach, self._private),
            AgentSelfService(self.roster, details, ground.platform, origin),
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
            await self.roster.get_internal_token(agent_id),
            *await self._delivery.list_private_values(agent_id),
            *await self._book.list_private_values(agent_id),
        ]


def own_models(secrets: SecretService, transports: TransportFactory) -> AgentProviders:
    """Return the model providers whose keys agents have, reached within the egress rules of agents."""

    async def settings(agent_id: str) -> Sequence[ModelSettings]:
        keys = await secrets.list_provider_keys(agent_id)
        found = (providers.settings(key.provider, key.name, key.value, key.base_url) for key in keys)
        return [one for one in found if one is not None]

    def connect(agent_id: str, settings: ModelSettings) -> ModelUpstream:
        return upstream(settings, transports(agent_id))

    return AgentProviders(settings, connect)


def _limits(settings: Settings) -> ContainerLimits:
    return ContainerLimits(memory_bytes=settings.agent_memory, cpus=settings.agent_cpus, pids=settings.agent_pids)
