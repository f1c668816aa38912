"""Services of the agents API: what agents have, and the workflows of their lives."""

import signal
from collections.abc import Collection, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial

from starlette.types import ASGIApp

from roost.agents.chat.conversations import ConversationService
from roost.agents.chat.service import ChatService
from roost.agents.library.instances.service import TemplateInstanceService
from roost.agents.library.skills.checks import SkillChecks
from roost.agents.library.skills.delivery import SkillDelivery
from roost.agents.library.skills.requirements import SkillRequirements
from roost.agents.library.skills.service import SkillService
from roost.agents.library.templates.service import TemplateService
from roost.agents.lifecycle.archives.task_import import TaskImport
from roost.agents.lifecycle.hosts.service import HostService
from roost.agents.lifecycle.key_revocation.service import KeyRevocation
from roost.agents.lifecycle.self_service.service import AgentSelfService
from roost.agents.lifecycle.workflows import trusted_authorities
from roost.agents.lifecycle.workflows.startup_inputs import StartupInputCollector
from roost.agents.models.gateway.service import ModelGateway
from roost.agents.models.keys.service import ModelKeyService
from roost.agents.models.servers.service import ModelServerService
from roost.agents.network.domains.service import AgentDomainService
from roost.agents.network.egress.agent_dialer import AgentDialer
from roost.agents.network.routes.service import RouteService
from roost.agents.network.sign_in.service import SignInService
from roost.agents.registry.agent_ports import AgentPorts
from roost.agents.registry.agent_profiles import AgentProfiles
from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.host_agents import HostAgents
from roost.agents.registry.repository import AgentRepository
from roost.agents.setup.channels.repository import ChannelRepository
from roost.agents.setup.channels.service import ChannelService
from roost.agents.setup.channels.validator import ChannelValidator
from roost.agents.setup.devices.service import DeviceService
from roost.agents.setup.runtime_config.service import RuntimeConfigService
from roost.agents.setup.secrets.service import SecretService
from roost.agents.setup.tasks.service import TaskService
from roost.agents.workspace.commands.service import CommandService
from roost.agents.workspace.files.service import AgentFileService
from roost.agents.workspace.git.build import PushBuild
from roost.agents.workspace.git.maintenance import RepositoryMaintenance
from roost.agents.workspace.git.service import AgentGitService
from roost.agents.workspace.logs.service import LogService
from roost.agents.workspace.terminals.service import TerminalService
from roost.app.agent_egress import ModelAccess, agent_dialer, agent_proxy, build_model_access
from roost.app.core_services import CoreServices
from roost.app.drivers import Drivers, create_upstream, prepare_engine
from roost.app.lifecycle_services import (
    LibraryServices,
    LifecycleOptions,
    LifecycleServices,
    NetworkServices,
    RegistryServices,
    StoredSetup,
    build_lifecycle_services,
    build_start_services,
)
from roost.app.storage_services import StorageServices
from roost.core.machine.disk_space import BALLAST_BYTES, DiskBallast
from roost.core.sensitive import Sensitive
from roost.domain_names.service import DomainService
from roost.drivers.runtime.contract import ContainerLimits, RuntimeFailed
from roost.http.server.relay import RelayServer
from roost.identity.caller import Plan
from roost.settings import Settings
from roost.storage.files.service import find_file_cid
from roost.web.service_registry import ServiceRegistry


@dataclass(frozen=True)
class SetupServices:
    stored: StoredSetup
    secrets: SecretService
    channels: ChannelService
    tasks: TaskService
    devices: DeviceService
    runtime_config: RuntimeConfigService


@dataclass(frozen=True)
class WorkspaceServices:
    """What a running container offers, its gateway's chats included."""

    files: AgentFileService
    commands: CommandService
    terminals: TerminalService
    chats: ChatService
    conversations: ConversationService
    logs: LogService
    git: AgentGitService
    git_maintenance: RepositoryMaintenance


@dataclass(frozen=True)
class ModelServices:
    gateway: ModelGateway
    keys: ModelKeyService
    servers: ModelServerService


@dataclass(frozen=True)
class AccessServices:
    """Hosts of agents, and the credentials by which owners and agents themselves reach an agent."""

    hosts: HostService
    self_service: AgentSelfService
    key_revocation: KeyRevocation
    sign_in: SignInService


@dataclass(frozen=True)
class AgentServices:
    registry: RegistryServices
    setup: SetupServices
    network: NetworkServices
    workspace: WorkspaceServices
    models: ModelServices
    library: LibraryServices
    lifecycle: LifecycleServices
    access: AccessServices

    def add_to(self, registry: ServiceRegistry) -> None:
        """Add the services of all groups."""
        registry.add(self.registry.runtimes)
        lifecycle = self.lifecycle
        for group in (self.setup, self.network, self.workspace, self.models, self.library, self.access):
            registry.add_fields(group)
        for group in (lifecycle, lifecycle.start, lifecycle.workspace):
            registry.add_fields(group)


def build_agent_services(
    core: CoreServices,
    drivers: Drivers,
    domains: DomainService,
    storage: StorageServices,
    templates: TemplateService,
    app: ASGIApp,
) -> AgentServices:
    """Build the services; requests of agents through their relays go to `app`."""
    registry, dialer = _build_registry(core, drivers, app), agent_dialer(core)
    stored = _build_stored_setup(core, drivers, registry, dialer)
    network = _build_network(core, domains, registry, dialer)
    access = build_model_access(core, drivers, registry.runtimes.agents, stored.secrets, dialer)
    library = _build_library(core, storage, templates, registry, stored, access.gateway, dialer)
    inputs = StartupInputCollector(access.gateway, stored.secrets.environment, stored.channels, library.instances)
    options = _lifecycle_options(core.settings)
    start = build_start_services(registry, library, inputs, drivers.git, options)
    lifecycle = build_lifecycle_services(registry, stored, network, library, start, storage.content, options)
    profiles = AgentProfiles(registry.runtimes.agents, lifecycle.restart)
    return AgentServices(
        registry=registry,
        setup=_build_setup(registry, stored, lifecycle),
        network=network,
        workspace=_build_workspace(core, drivers, stored, lifecycle, registry),
        models=_build_models(access, stored.secrets, profiles),
        library=library,
        lifecycle=lifecycle,
        access=_build_access(core, registry, lifecycle, profiles),
    )


def _build_registry(core: CoreServices, drivers: Drivers, app: ASGIApp) -> RegistryServices:
    """Build the registry, with ports as the addresses of agents if the settings have some."""
    settings, ports = core.settings, None
    if settings.agent_ports is not None:
        ports = AgentPorts(core.db, core.host.id, settings.agent_ports)
        core.addresses.use_ports(ports.find_port, ports.find_agent)
    quotas = {Plan.FREE: settings.quota_free, Plan.PAID: settings.quota_paid}
    repository = AgentRepository(core.db, core.sealer, quotas, core.host.id, ports)
    return RegistryServices(
        operations=core.operations,
        runtimes=AgentRuntimes(repository, drivers.runtime, drivers.engines),
        host_agents=HostAgents(core.db, core.host.id),
        relays=RelayServer(drivers.runtime, app, agent_proxy(core)),
        tokens=core.gateway_tokens,
        token_reads=core.token_reads,
        sealer=core.sealer,
        origin=core.addresses.agent_origin,
    )


def _build_stored_setup(
    core: CoreServices, drivers: Drivers, registry: RegistryServices, dialer: AgentDialer
) -> StoredSetup:
    repository = registry.runtimes.agents
    secrets = SecretService(core.db, core.sealer, repository)
    channels = ChannelRepository(core.db, core.sealer, repository)

    async def load_private_values(agent_id: str) -> Mapping[str, Sensitive[str]]:
        """Return the values by name that an agent's logs mask and its snapshots leave out."""
        return {
            "gateway token": await core.gateway_tokens.read(agent_id),
            "internal token": await repository.get_internal_token(agent_id),
            "platform token": await core.platform_tokens.get_prefix(),
            **await channels.get_private_values(agent_id),
            **await secrets.environment.get_private_values(agent_id),
        }

    validator = ChannelValidator(drivers.chat_platforms, dialer.admit)
    return StoredSetup(secrets, channels, validator, load_private_values)


def _build_network(
    core: CoreServices, domains: DomainService, registry: RegistryServices, dialer: AgentDialer
) -> NetworkServices:
    repository, port = registry.runtimes.agents, registry.runtimes.get_gateway_port
    return NetworkServices(
        RouteService(core.db, repository, port),
        AgentDomainService(repository, domains, port, core.addresses.origin, dialer.admit),
    )


def _build_library(
    core: CoreServices,
    storage: StorageServices,
    templates: TemplateService,
    registry: RegistryServices,
    stored: StoredSetup,
    models: ModelGateway,
    dialer: AgentDialer,
) -> LibraryServices:
    db, runtimes = core.db, registry.runtimes
    skills = SkillService(db, storage.content, storage.files.quota.check, find_file_cid)

    async def list_models(agent_id: str) -> Collection[str] | None:
        """Return the ids of the models that an agent is offered, None if a provider did not list its own."""
        offer = await models.get_offer(agent_id)
        return offer.ids if offer.complete else None

    return LibraryServices(
        skills=skills,
        checks=SkillChecks(skills),
        delivery=SkillDelivery(db, skills),
        requirements=SkillRequirements(stored.secrets, runtimes, lambda host: not dialer.policy.admits_host(host)),
        instances=TemplateInstanceService(
            db,
            runtimes,
            stored.secrets,
            stored.channels,
            stored.channel_validator,
            list_models,
            TaskImport.enqueue,
            templates.find_latest,
        ),
    )


def _build_setup(registry: RegistryServices, stored: StoredSetup, lifecycle: LifecycleServices) -> SetupServices:
    """Build the services whose changes restart agents."""
    db, runtimes, restart = registry.operations.db, registry.runtimes, lifecycle.restart
    return SetupServices(
        stored=stored,
        secrets=stored.secrets,
        channels=ChannelService(db, stored.channels, stored.channel_validator, runtimes, restart),
        tasks=TaskService(db, runtimes),
        devices=DeviceService(db, runtimes),
        runtime_config=RuntimeConfigService(runtimes, lifecycle.start.starter.get_setup, restart),
    )


def _build_workspace(
    core: CoreServices,
    drivers: Drivers,
    stored: StoredSetup,
    lifecycle: LifecycleServices,
    registry: RegistryServices,
) -> WorkspaceServices:
    db, runtimes, get_variables = core.db, registry.runtimes, stored.secrets.environment.get_values
    logs, snapshots, start = LogService(runtimes, stored.load_private_values), lifecycle.workspace, lifecycle.start
    return WorkspaceServices(
        files=AgentFileService(runtimes),
        commands=CommandService(runtimes, get_variables),
        terminals=TerminalService(runtimes, get_variables),
        chats=ChatService(runtimes),
        conversations=ConversationService(db, runtimes),
        logs=logs,
        git=AgentGitService(
            core.operations,
            runtimes,
            start.pushes,
            PushBuild(db, core.operations, start.scripts, logs),
            registry.origin,
            snapshots.automatic,
            start.start.open_workspace,
            snapshots.skills.restore_files,
        ),
        git_maintenance=RepositoryMaintenance(
            registry.host_agents, drivers.git.collector, snapshots.history.list_commits
        ),
    )


def _build_models(access: ModelAccess, secrets: SecretService, profiles: AgentProfiles) -> ModelServices:
    keys = ModelKeyService(access.keys, access.providers, profiles)
    secrets.try_keys_by(keys.check_replacement)
    return ModelServices(access.gateway, keys, ModelServerService(access.servers, profiles, secrets, create_upstream))


def _build_access(
    core: CoreServices, registry: RegistryServices, lifecycle: LifecycleServices, profiles: AgentProfiles
) -> AccessServices:
    repository, tokens, origin = registry.runtimes.agents, core.gateway_tokens, registry.origin
    stop_server = partial(signal.raise_signal, signal.SIGINT)  # SIGTERM may keep the agents
    return AccessServices(
        hosts=HostService(core.db, core.host, stop_server),
        self_service=AgentSelfService(repository, lifecycle.details, core.platform_tokens, origin, profiles),
        key_revocation=KeyRevocation(core.api_keys, tokens, core.token_reads, repository),
        sign_in=SignInService(core.db, tokens, origin, core.failed_logins),
    )


def _lifecycle_options(settings: Settings) -> LifecycleOptions:
    return LifecycleOptions(
        limits=ContainerLimits(
            memory_bytes=settings.agent_memory,
            cpus=settings.agent_cpus,
            pids=settings.agent_pids,
            disk_bytes=settings.agent_disk,
        ),
        trust=trusted_authorities.load_authorities(settings.ca_file),
        prepare_version=partial(prepare_engine, settings),
        disk_reserve=settings.disk_reserve,
        ballast=DiskBallast(settings.data / "ballast", BALLAST_BYTES),
        snapshot_delay=settings.snapshot_delay,
    )


async def start_agent_services(agents: AgentServices, stack: AsyncExitStack) -> None:
    """Register the host, adopt its agents that run and start the others; `stack` ends all of them cleanly.

    Raises HostRunning, and RuntimeFailed when no container can be started.
    """
    network, lifecycle, workspace = agents.network, agents.lifecycle, agents.workspace
    runtime, repository = agents.registry.runtimes.runtime, agents.registry.runtimes.agents
    hosts, routes, gateway = agents.access.hosts, network.routes, agents.models.gateway
    reconciler, automatic, disk_guard = lifecycle.reconciler, lifecycle.workspace.automatic, lifecycle.start.disk_guard
    stack.push_async_callback(hosts.stop)
    await hosts.start()
    if not await runtime.list():  # one that runs proves the same, and a new one takes long on a busy machine
        capabilities = await runtime.probe()
        if not capabilities.usable:
            raise RuntimeFailed(f"No container can be started here: {capabilities.error}")
    stack.push_async_callback(routes.mirror.stop)
    await routes.remove_closed()
    await network.domains.close_warden_ports()
    await routes.mirror.start()
    stack.push_async_callback(repository.last_uses.stop)
    repository.last_uses.start()
    stack.push_async_callback(gateway.stop)
    await gateway.start()
    stack.push_async_callback(agents.registry.relays.close_all)
    stack.push_async_callback(reconciler.stop)
    await reconciler.start()
    if (ports := repository.ports) is not None:  # after the adoption of agents, before operations start them
        stack.push_async_callback(ports.stop)
        await ports.start()
    agents.setup.secrets.subscribe(lambda _: reconciler.wake())  # an agent may wait for that
    stack.push_async_callback(automatic.stop)
    automatic.start()
    stack.push_async_callback(disk_guard.stop)
    await disk_guard.start(reconciler.wake)
    stack.push_async_callback(workspace.git_maintenance.stop)
    workspace.git_maintenance.start()
    stack.push_async_callback(agents.library.checks.stop)
    agents.library.checks.start()
    await workspace.git.enqueue_unfinished_pushes(agents.registry.host_agents)
