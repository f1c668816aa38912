"""Services of the agents API: what agents have, and the workflows of their lives."""

import signal
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial

from starlette.types import ASGIApp

from roost import __version__
from roost.agents.chat.conversations import ConversationService
from roost.agents.chat.service import ChatService
from roost.agents.lifecycle.archives.export import AgentExporter
from roost.agents.lifecycle.archives.importer import AgentImporter
from roost.agents.lifecycle.archives.task_import import TaskImport
from roost.agents.lifecycle.hosts.agent_servers import AgentServers
from roost.agents.lifecycle.hosts.service import HostService, load_certificate
from roost.agents.lifecycle.hosts.takeover import AgentTakeover
from roost.agents.lifecycle.key_revocation.service import KeyRevocation
from roost.agents.lifecycle.self_service.service import AgentSelfService
from roost.agents.lifecycle.workflows import trusted_authorities
from roost.agents.lifecycle.workflows.gateway import PrivateValues, StartupInputCollector
from roost.agents.lifecycle.workflows.launch_sources import LaunchSources, TemplateSources
from roost.agents.lifecycle.workflows.move_targets import OtherServers
from roost.agents.models.gateway.model import ModelTimeouts
from roost.agents.models.gateway.service import ModelGateway
from roost.agents.models.keys.service import ModelKeyService, ModelKeyTrial
from roost.agents.models.servers.service import ModelServerService
from roost.agents.network.domains.service import AgentDomainService
from roost.agents.network.egress.agent_dialer import AgentDialer
from roost.agents.network.routes.service import RouteService
from roost.agents.network.sign_in.service import SignInService
from roost.agents.registry.agent_containers import AgentContainers
from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.repository import AgentProfiles, AgentRepository, HostAgents
from roost.agents.setup.channels.repository import ChannelRepository
from roost.agents.setup.channels.service import ChannelService
from roost.agents.setup.channels.validator import ChannelValidator
from roost.agents.setup.devices.service import DeviceService
from roost.agents.setup.runtime_config.service import RuntimeConfigService
from roost.agents.setup.secrets.provider_keys import ProviderKeyService
from roost.agents.setup.secrets.service import SecretService
from roost.agents.setup.tasks.service import TaskService
from roost.agents.workspace.commands.service import CommandService
from roost.agents.workspace.files.service import AgentFileService
from roost.agents.workspace.git.maintenance import RepositoryMaintenance
from roost.agents.workspace.git.push import PushBuild
from roost.agents.workspace.git.service import AgentGitService
from roost.agents.workspace.logs.service import LogService
from roost.app.agent_egress import agent_dialer, agent_proxy, build_model_access
from roost.app.core_services import CoreServices
from roost.app.drivers import Drivers, create_upstream, prepare_engine
from roost.app.library_services import SharedLibrary, build_hub, build_library, build_templates
from roost.app.lifecycle_services import (
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
from roost.domain_names.service import DomainService
from roost.drivers.runtime.contract import ContainerLimits, RuntimeFailed
from roost.drivers.runtime.tls_carrier import make_bridge_certificate
from roost.drivers.runtime.tls_peers import TlsPeerNetwork
from roost.http.server.relay import RelayServer
from roost.identity.caller import Plan
from roost.settings import Settings
from roost.storage.files.tus.service import find_host
from roost.web.service_registry import ServiceGroup


@dataclass(frozen=True)
class SetupServices(ServiceGroup):
    stored: StoredSetup
    channels: ChannelService
    tasks: TaskService
    devices: DeviceService
    runtime_config: RuntimeConfigService


@dataclass(frozen=True)
class WorkspaceServices(ServiceGroup):
    """What a running container offers, its gateway's chats included."""

    files: AgentFileService
    commands: CommandService
    chats: ChatService
    conversations: ConversationService
    logs: LogService
    git: AgentGitService
    git_maintenance: RepositoryMaintenance


@dataclass(frozen=True)
class ModelServices(ServiceGroup):
    gateway: ModelGateway
    keys: ModelKeyService
    servers: ModelServerService


@dataclass(frozen=True)
class AccessServices(ServiceGroup):
    """Hosts of agents, and the credentials by which owners and agents themselves reach an agent."""

    hosts: HostService
    takeover: AgentTakeover
    servers: AgentServers
    self_service: AgentSelfService
    key_revocation: KeyRevocation
    sign_in: SignInService


@dataclass(frozen=True)
class AgentServices(ServiceGroup):
    registry: RegistryServices
    setup: SetupServices
    network: NetworkServices
    workspace: WorkspaceServices
    models: ModelServices
    library: SharedLibrary
    lifecycle: LifecycleServices
    access: AccessServices


def build_agent_services(
    core: CoreServices, drivers: Drivers, domains: DomainService, storage: StorageServices, app: ASGIApp
) -> AgentServices:
    """Build the services; requests of agents through their relays go to `app`."""
    registry, dialer = _build_registry(core, drivers, app), agent_dialer(core)
    repository, access = registry.runtimes.agents, build_model_access(core, dialer)
    stored = _build_stored_setup(core, drivers, registry, dialer, access.trial)
    network = NetworkServices(
        routes=RouteService(core.db, registry.runtimes),
        domains=AgentDomainService(registry.runtimes, domains, core.addresses.origin, dialer.admit),
    )
    gateway = ModelGateway(
        core.db,
        drivers.upstreams,
        providers=access.providers,
        timeouts=ModelTimeouts(core.settings.model_timeout, core.settings.model_idle_timeout),
        record_use=repository.last_uses.record,
    )
    stored.secrets.subscribe(gateway.refresh_agent)
    templates, packaged = build_templates(core, storage, [engine.id for engine in drivers.engines])
    library = build_library(registry, storage, stored, templates, gateway, dialer.policy)
    inputs = StartupInputCollector(gateway, stored.secrets.environment, stored.channels, library.instances)
    options, others = _lifecycle_options(core.settings), _build_other_servers(core)
    start = build_start_services(registry, library, inputs, drivers.git, options, others)
    lifecycle = build_lifecycle_services(registry, stored, network, library, start, storage.content, options)
    profiles = AgentProfiles(repository, lifecycle.restart)
    keys = ProviderKeyService(core.db, core.sealer, repository, stored.secrets)
    return AgentServices(
        registry=registry,
        setup=_build_setup(registry, stored, lifecycle),
        network=network,
        workspace=_build_workspace(core, drivers, stored, lifecycle, registry),
        models=ModelServices(
            gateway=gateway,
            keys=ModelKeyService(keys, access.trial, profiles),
            servers=ModelServerService(access.servers, profiles, stored.secrets, create_upstream),
        ),
        library=SharedLibrary(library, templates, packaged, build_hub(core, storage, library.skills)),
        lifecycle=lifecycle,
        access=_build_access(core, registry, lifecycle, profiles),
    )


def _build_registry(core: CoreServices, drivers: Drivers, app: ASGIApp) -> RegistryServices:
    quotas = {Plan.FREE: core.settings.quota_free, Plan.PAID: core.settings.quota_paid}
    repository = AgentRepository(core.db, core.sealer, quotas, core.host.id, core.addresses.ports)
    host_agents = HostAgents(core.db, core.host.id)
    containers = AgentContainers(drivers.runtimes, host_agents, repository.passing)
    return RegistryServices(
        operations=core.operations,
        runtimes=AgentRuntimes(repository, containers, drivers.engines),
        host_agents=host_agents,
        relays=RelayServer(containers, app, agent_proxy(core)),
        tokens=core.identity.gateway_tokens,
        token_reads=core.identity.token_reads,
        sealer=core.sealer,
        origin=core.addresses.agent_origin,
    )


def _build_stored_setup(
    core: CoreServices, drivers: Drivers, registry: RegistryServices, dialer: AgentDialer, trial: ModelKeyTrial
) -> StoredSetup:
    repository, tokens, platform = registry.runtimes.agents, registry.tokens, core.identity.platform_tokens
    secrets = SecretService(core.db, core.sealer, repository, trial)
    channels = ChannelRepository(core.db, core.sealer, repository)
    return StoredSetup(
        secrets=secrets,
        channels=channels,
        channel_validator=ChannelValidator(drivers.chat_platforms, dialer.admit),
        load_private_values=PrivateValues(repository, tokens, platform, channels, secrets.environment).load,
    )


def _build_setup(registry: RegistryServices, stored: StoredSetup, lifecycle: LifecycleServices) -> SetupServices:
    """Build the services whose changes restart agents."""
    db, runtimes, restart = registry.operations.db, registry.runtimes, lifecycle.restart
    return SetupServices(
        stored=stored,
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
        chats=ChatService(runtimes),
        conversations=ConversationService(db, runtimes),
        logs=logs,
        git=AgentGitService(
            core.operations,
            runtimes,
            start.pushes,
            PushBuild(core.operations, start.scripts, logs),
            registry.origin,
            snapshots.automatic,
            start.start.open_workspace,
            snapshots.skills.restore_files,
        ),
        git_maintenance=RepositoryMaintenance(
            registry.host_agents, drivers.git.collector, snapshots.history.list_commits
        ),
    )


def _build_access(
    core: CoreServices, registry: RegistryServices, lifecycle: LifecycleServices, profiles: AgentProfiles
) -> AccessServices:
    repository, origin, identity = registry.runtimes.agents, registry.origin, core.identity
    tokens = identity.gateway_tokens
    stop_server = partial(signal.raise_signal, signal.SIGINT)  # SIGTERM may keep agents
    runtime = registry.runtimes.runtime
    shared_runtime = runtime.name if runtime.is_shared else None
    return AccessServices(
        hosts=HostService(core.db, core.host, stop_server, core.settings.peer_address, shared_runtime),
        takeover=AgentTakeover(core.db, core.host.id, shared_runtime, repository.passing),
        servers=AgentServers(core.db, core.host.id, lifecycle.start.move.targets.others.network, find_host),
        self_service=AgentSelfService(repository, lifecycle.details, identity.platform_tokens, origin, profiles),
        key_revocation=KeyRevocation(identity.api_keys, tokens, identity.token_reads, repository),
        sign_in=SignInService(core.db, tokens, origin, identity.sessions.failed_logins),
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


def _build_other_servers(core: CoreServices) -> OtherServers:
    settings = core.settings
    load = partial(load_certificate, core.db, core.sealer, partial(make_bridge_certificate, "servers"))
    network = TlsPeerNetwork(settings.peer_address, __version__, load)
    return OtherServers(network, settings.blobs if "://" in settings.blobs else "")


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
    await agents.registry.host_agents.assign_runtimes(runtime.assignments)
    await lifecycle.start.move.targets.discard_copies()
    peers = lifecycle.start.move.targets.others.network
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
    stack.push_async_callback(peers.stop)
    stack.push_async_callback(agents.access.servers.stop)
    await peers.start()
    if (ports := repository.ports) is not None:  # after the adoption of agents, before operations start them
        stack.push_async_callback(ports.stop)
        await ports.start()
    # An agent may wait for a secret. Without an agent, all may have changed: the next check sees that in time.
    agents.setup.stored.secrets.subscribe(lambda agent_id: None if agent_id is None else reconciler.wake())
    stack.push_async_callback(automatic.stop)
    automatic.start()
    stack.push_async_callback(disk_guard.stop)
    await disk_guard.start(reconciler.wake)
    stack.push_async_callback(workspace.git_maintenance.stop)
    workspace.git_maintenance.start()
    stack.push_async_callback(agents.library.agents.skills.checker.stop)
    agents.library.agents.skills.checker.start()
    await workspace.git.enqueue_unfinished_pushes(agents.registry.host_agents)
    stack.push_async_callback(workspace.git.stop)
    workspace.git.start()
    stack.push_async_callback(agents.library.hub.maintenance.stop)
    agents.library.hub.maintenance.start()


@dataclass(frozen=True)
class ArchiveServices(ServiceGroup):
    exporter: AgentExporter
    importer: AgentImporter
    launch_sources: LaunchSources


def build_archive_services(core: CoreServices, storage: StorageServices, agents: AgentServices) -> ArchiveServices:
    """Build the services, and register their operation."""
    db, content, runtimes, launch = core.db, storage.content, agents.registry.runtimes, agents.lifecycle.launch
    setup, tasks, skills = agents.setup.stored, agents.setup.tasks, agents.lifecycle.workspace.skills
    templates, hub, quota = agents.library.templates, agents.library.hub.hub, storage.files.files.quota
    task_import = TaskImport(core.operations, runtimes.agents, tasks)
    return ArchiveServices(
        exporter=AgentExporter(
            db,
            runtimes,
            content.reader,
            agents.lifecycle.workspace.snapshots,
            setup.secrets,
            setup.load_private_values,
            setup.channels,
            tasks,
            skills,
        ),
        importer=AgentImporter(
            db, runtimes.agents, content, quota, launch, task_import, skills, core.settings.agent_disk
        ),
        launch_sources=LaunchSources(
            runtimes,
            agents.lifecycle.workspace.snapshots,
            TemplateSources(templates, content, quota, setup.secrets, skills, hub, agents.network.routes),
        ),
    )
