"""Services and workflows of the agents API, connected."""

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
from roost.app.drivers import Drivers, create_chat_platforms, create_upstream, prepare_engine
from roost.config import Settings
from roost.core.sensitive import Sensitive
from roost.drivers.model.contract import ModelSettings, ModelUpstream
from roost.drivers.runtime.contract import ContainerLimits, RuntimeFailed
from roost.hosts.relay import RelayServer
from roost.identity.caller import Plan
from roost.net.guarded_transport import TransportFactory


class AgentServices:
    """Services of the agents API, created in two steps: the application needs them, and their relays need it."""

    def __init__(self, core: CoreServices, drivers: Drivers) -> None:
        settings, db, seal = core.settings, core.db, core.sealer
        self._core = core
        self._drivers = drivers
        self.repository = AgentRepository(db, seal, {Plan.FREE: settings.quota_free, Plan.PAID: settings.quota_paid})
        self.secrets, self._environment = SecretService(db, seal, self.repository), SecretEnvironment(db, seal)
        self._channels = ChannelRepository(db, seal, self.repository)
        self.runtimes = AgentRuntimes(self.repository, drivers.runtime, drivers.engines)
        own = agent_providers(self.secrets, core.transports)
        self.models = ModelGateway(db, drivers.upstreams, own=own)
        self.secrets.subscribe(self.models.changed)

    def connect(self, app: ASGIApp) -> None:
        """Connect the containers' relays to `app` and the internet, and create the workflows."""
        core, drivers, settings = self._core, self._drivers, self._core.settings
        db, queue, origin = core.db, core.queue, core.addresses.agent_origin
        self.relays = RelayServer(drivers.runtime, app, EgressProxy(core.dialer))
        channels, validator = self._channels, ChannelValidator(create_chat_platforms(settings))
        inputs = StartupInputCollector(self.models, self._environment, channels)
        starter = GatewayStarter(self.repository, self.runtimes, origin, inputs)
        versions = VersionService(self.repository, self.runtimes, partial(prepare_engine, settings))
        scripts = ScriptService(db, queue, self.repository, self.runtimes, origin, inputs)
        details = AgentDetails(self.repository, self.runtimes, core.gateways, self.secrets, origin, scripts)
        self.launch = LaunchWorkflow(
            db, queue, self.repository, core.gateways, self.runtimes, self.secrets, validator, channels
        )
        restart = RestartWorkflow(db, queue, self.repository, self.runtimes, details, versions)
        teardown = DeleteWorkflow(db, queue, self.repository, core.gateways, drivers.runtime, self.relays)
        self.reconciler = AgentReconciler(
            db, queue, self.repository, self.runtimes, drivers.runtime, self.relays, starter
        )
        trusted = trusted_authorities.load_authorities(settings.ca_file)
        limits = _limits(settings)
        start = StartWorkflow(
            self.repository, self.runtimes, drivers.runtime, self.relays, starter, versions, scripts, limits, trusted
        )
        update = UpdateWorkflow(db, queue, self.repository, self.runtimes, versions, start)
        queue.handle(lifecycle.START, start)
        queue.handle(lifecycle.UPDATE, update.handle)
        queue.handle(SCRIPTS_RUN, scripts.handle)
        queue.handle(lifecycle.DELETE, teardown.handle, retries=10)
        for service in (
            self.secrets,
            self.runtimes,
            self.models,
            details,
            self.launch,
            restart,
            teardown,
            update,
            versions,
            scripts,
            ChannelService(db, channels, validator, self.repository, self.runtimes, restart),
            WorkspaceService(self.repository, self.runtimes, self._environment.get_values),
            TaskService(self.runtimes),
            DeviceService(self.runtimes),
            RuntimeConfigService(self.repository, self.runtimes, starter.setup, restart),
            LogService(self.repository, self.runtimes, self._private_values),
            AgentSelfService(self.repository, details, core.platform, origin),
        ):
            core.services.add(service)

    async def start(self) -> None:
        """Adopt running agents and start the others. Raises RuntimeFailed if no container can be started."""
        capabilities = await self._drivers.runtime.probe()
        if not capabilities.usable:
            raise RuntimeFailed(f"No container can be started here: {capabilities.error}")
        await self.models.start()
        await self.reconciler.start()

    async def stop(self) -> None:
        """Stop all agents cleanly; the next start restores them."""
        await self.reconciler.stop()
        await self.relays.close_all()
        await self.models.stop()

    async def _private_values(self, agent_id: str) -> Sequence[Sensitive[str]]:
        """Return the values that must not appear in an agent's logs."""
        return [
            await self._core.gateways.read(agent_id),
            await self.repository.get_internal_token(agent_id),
            *await self._environment.list_private_values(agent_id),
            *await self._channels.list_private_values(agent_id),
        ]


def agent_providers(secrets: SecretService, transports: TransportFactory) -> AgentProviders:
    """Return the model providers whose keys agents have, reached within the egress rules of agents."""

    async def settings(agent_id: str) -> Sequence[ModelSettings]:
        keys = await secrets.list_provider_keys(agent_id)
        found = (providers.settings(key.provider, key.name, key.value, key.base_url) for key in keys)
        return [upstream for upstream in found if upstream is not None]

    def connect(agent_id: str, settings: ModelSettings) -> ModelUpstream:
        return create_upstream(settings, transports(agent_id))

    return AgentProviders(settings, connect)


def _limits(settings: Settings) -> ContainerLimits:
    return ContainerLimits(memory_bytes=settings.agent_memory, cpus=settings.agent_cpus, pids=settings.agent_pids)
