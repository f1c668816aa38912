"""Services of the agents API: what agents have, and the workflows of their lives."""

import signal
from collections.abc import Collection, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

from starlette.types import ASGIApp

from roost.agents.chat.conversations import ConversationService
from roost.agents.chat.service import ChatService
from roost.agents.library.instances.service import TemplateInstanceService
from roost.agents.library.skills.checks import SkillChecks
from roost.agents.library.skills.service import SkillService
from roost.agents.library.templates.service import TemplateService
from roost.agents.lifecycle.archives.task_import import TaskImport
from roost.agents.lifecycle.hosts.service import HostService
from roost.agents.lifecycle.key_revocation.service import KeyRevocation
from roost.agents.lifecycle.self_service.service import AgentSelfService
from roost.agents.lifecycle.workflows import trusted_authorities
from roost.agents.lifecycle.workflows.startup_inputs import StartupInputCollector
from roost.agents.models.gateway.model import AgentProviders, ModelTimeouts
from roost.agents.models.gateway.service import ModelGateway
from roost.agents.models.keys.service import ModelKeyService
from roost.agents.models.servers.access import ModelServerAccess
from roost.agents.models.servers.service import ModelServerService
from roost.agents.network.domains.service import AgentDomainService
from roost.agents.network.egress.agent_dialer import AgentDialer
from roost.agents.network.routes.service import RouteService
from roost.agents.network.sign_in.service import SignInService
from roost.agents.registry.agent_ports import AgentPorts
from roost.agents.registry.agent_profiles import AgentProfiles
from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.repository import AgentRepository
from roost.agents.setup.channels.repository import ChannelRepository
from roost.agents.setup.channels.service import ChannelService
from roost.agents.setup.channels.validator import ChannelValidator
from roost.agents.setup.devices.service import DeviceService
from roost.agents.setup.runtime_config.service import RuntimeConfigService
from roost.agents.setup.secrets.environment import SecretEnvironment
from roost.agents.setup.secrets.provider_keys import ProviderKeys
from roost.agents.setup.secrets.service import SecretService
from roost.agents.setup.tasks.service import TaskService
from roost.agents.workspace.commands.service import CommandService
from roost.agents.workspace.files.service import AgentFileService
from roost.agents.workspace.git.build import PushBuild
from roost.agents.workspace.git.maintenance import RepositoryMaintenance
from roost.agents.workspace.git.service import AgentGitService
from roost.agents.workspace.logs.service import LogService
from roost.agents.workspace.snapshots.service import LoadSecrets, expect_committed
from roost.agents.workspace.terminals.service import TerminalService
from roost.app.agent_egress import agent_dialer, agent_providers, agent_proxy
from roost.app.core_services import CoreServices
from roost.app.drivers import Drivers, create_upstream, prepare_engine
from roost.app.lifecycle_services import LifecycleServices, build_lifecycle_services
from roost.app.storage_services import StorageServices
from roost.core.db import Database
from roost.core.machine.disk_space import BALLAST_BYTES, DiskBallast
from roost.core.sensitive import Sensitive
from roost.domain_names.service import DomainService
from roost.drivers.runtime.contract import ContainerLimits, Runtime, RuntimeFailed
from roost.http.server.relay import RelayServer
from roost.identity.caller import Plan
from roost.net.guarded_transport import transport_factory
from roost.settings import Settings
from roost.storage.files.service import find_file_cid


@dataclass(frozen=True)
class AgentServices:
    hosts: HostService
    repository: AgentRepository
    runtimes: AgentRuntimes
    secrets: SecretService
    private_values: LoadSecrets
    models: ModelGateway
    model_keys: ModelKeyService
    model_servers: ModelServerService
    relays: RelayServer
    lifecycle: LifecycleServices
    channels: ChannelService
    channel_validator: ChannelValidator
    commands: CommandService
    terminals: TerminalService
    chats: ChatService
    conversations: ConversationService
    files: AgentFileService
    tasks: TaskService
    devices: DeviceService
    routes: RouteService
    domains: AgentDomainService
    runtime_config: RuntimeConfigService
    logs: LogService
    git: AgentGitService
    git_maintenance: RepositoryMaintenance
    self_service: AgentSelfService
    key_revocation: KeyRevocation
    sign_in: SignInService
    skill_library: SkillService
    skill_checks: SkillChecks


def build_agent_services(
    core: CoreServices,
    drivers: Drivers,
    domains: DomainService,
    storage: StorageServices,
    templates: TemplateService,
    app: ASGIApp,
) -> AgentServices:
    """Build the services; requests of agents through their relays go to `app`."""
    settings, db, sealer, repository = core.settings, core.db, core.sealer, _build_repository(core)
    secrets, channels = SecretService(db, sealer, repository), ChannelRepository(db, sealer, repository)
    runtimes, dialer = AgentRuntimes(repository, drivers.runtime, drivers.engines), agent_dialer(core)
    environment, validator = SecretEnvironment(db, sealer), ChannelValidator(drivers.chat_platforms, dialer.admit)
    private_values = partial(_get_private_values, core, repository, environment, channels)
    servers, relays = _model_server_access(core), RelayServer(drivers.runtime, app, agent_proxy(core))
    keys, providers = _build_providers(core, repository, secrets, dialer, servers)
    models = _build_model_gateway(core, drivers, secrets, providers, repository)
    logs = LogService(repository, runtimes, private_values)
    instances = _build_instances(core, runtimes, secrets, channels, validator, models, templates)
    skill_library = SkillService(db, storage.content, storage.files.quota.check, find_file_cid)
    routing = _build_routing(core, domains, repository, runtimes, dialer)
    lifecycle = build_lifecycle_services(
        db=db,
        operations=core.operations,
        repository=repository,
        runtimes=runtimes,
        runtime=drivers.runtime,
        relays=relays,
        gateway_tokens=core.gateway_tokens,
        token_reads=core.token_reads,
        git=drivers.git,
        content=storage.content,
        sealer=sealer,
        get_private_values=private_values,
        secrets=secrets,
        channels=channels,
        channel_validator=validator,
        origin=core.addresses.agent_origin,
        startup_inputs=StartupInputCollector(models, environment, channels, instances),
        instances=instances,
        prepare_version=partial(prepare_engine, settings),
        **_disk_options(settings),
        limits=_container_limits(settings),
        trust=trusted_authorities.load_authorities(settings.ca_file),
        skill_library=skill_library,
        **routing,
        refuses_host=lambda host: not dialer.policy.admits_host(host),
    )
    return AgentServices(
        hosts=HostService(db, core.host, partial(signal.raise_signal, signal.SIGINT)),  # SIGTERM may keep the agents
        repository=repository,
        runtimes=runtimes,
        secrets=secrets,
        private_values=private_values,
        models=models,
        relays=relays,
        lifecycle=lifecycle,
        channel_validator=validator,
        channels=ChannelService(db, channels, validator, repository, runtimes, lifecycle.restart),
        **_container_services(db, repository, runtimes, environment),
        **routing,
        runtime_config=RuntimeConfigService(repository, runtimes, lifecycle.starter.get_setup, lifecycle.restart),
        logs=logs,
        git=_build_git_service(core, drivers, repository, runtimes, lifecycle, logs),
        git_maintenance=_build_git_maintenance(drivers, lifecycle),
        **_profile_services(core, repository, lifecycle, servers, secrets, keys, providers),
        sign_in=SignInService(db, core.gateway_tokens, core.addresses.agent_origin, core.failed_logins),
        **_skill_services(skill_library),
    )


def _build_repository(core: CoreServices) -> AgentRepository:
    """Build the repository, with ports as the addresses of agents if the settings have some."""
    settings, ports = core.settings, None
    if settings.agent_ports is not None:
        ports = AgentPorts(core.db, core.host.id, settings.agent_ports)
        core.addresses.use_ports(ports.find_port, ports.find_agent)
    return AgentRepository(core.db, core.sealer, _agent_quotas(settings), core.host.id, ports)


def _container_services(
    db: Database, repository: AgentRepository, runtimes: AgentRuntimes, environment: SecretEnvironment
) -> dict[str, Any]:
    """Return the services that only need an agent's container."""
    return {
        "commands": CommandService(repository, runtimes, environment.get_values),
        "terminals": TerminalService(repository, runtimes, environment.get_values),
        "chats": ChatService(runtimes),
        "conversations": ConversationService(db, runtimes),
        "files": AgentFileService(repository, runtimes),
        "tasks": TaskService(db, runtimes),
        "devices": DeviceService(db, runtimes),
    }


def _profile_services(
    core: CoreServices,
    repository: AgentRepository,
    lifecycle: LifecycleServices,
    servers: ModelServerAccess,
    secrets: SecretService,
    keys: ProviderKeys,
    providers: AgentProviders,
) -> dict[str, Any]:
    """Return the services that change profiles of agents, and the one that revokes keys."""
    profiles, origin = AgentProfiles(repository, lifecycle.restart), core.addresses.agent_origin
    model_keys = ModelKeyService(keys, providers, profiles)
    secrets.try_keys_by(model_keys.check_replacement)
    return {
        "model_keys": model_keys,
        "key_revocation": KeyRevocation(core.api_keys, core.gateway_tokens, core.token_reads, repository),
        "model_servers": ModelServerService(servers, profiles, secrets, create_upstream),
        "self_service": AgentSelfService(repository, lifecycle.details, core.platform_tokens, origin, profiles),
    }


def _skill_services(library: SkillService) -> dict[str, Any]:
    return {"skill_library": library, "skill_checks": SkillChecks(library)}


def _build_routing(
    core: CoreServices,
    domains: DomainService,
    repository: AgentRepository,
    runtimes: AgentRuntimes,
    dialer: AgentDialer,
) -> dict[str, Any]:
    """Return the services that lead requests to an agent's own programs."""
    port = runtimes.get_gateway_port
    return {
        "routes": RouteService(core.db, repository, port),
        "domains": AgentDomainService(repository, domains, port, core.addresses.origin, dialer.admit),
    }


def _model_server_access(core: CoreServices) -> ModelServerAccess:
    settings = core.settings
    is_personal = settings.is_local and not settings.tls and settings.domain == "localhost"
    return ModelServerAccess(core.db, settings.model_servers, is_personal=is_personal)


def _build_providers(
    core: CoreServices,
    repository: AgentRepository,
    secrets: SecretService,
    dialer: AgentDialer,
    servers: ModelServerAccess,
) -> tuple[ProviderKeys, AgentProviders]:
    keys = ProviderKeys(core.db, core.sealer, repository, secrets)
    return keys, agent_providers(keys, transport_factory(dialer, core.settings.ca_file), servers)


def _build_model_gateway(
    core: CoreServices,
    drivers: Drivers,
    secrets: SecretService,
    providers: AgentProviders,
    repository: AgentRepository,
) -> ModelGateway:
    """Build the gateway, which knows of each change of an agent's keys."""
    settings, record_use = core.settings, repository.last_uses.record
    timeouts = ModelTimeouts(settings.model_timeout, settings.model_idle_timeout)
    models = ModelGateway(core.db, drivers.upstreams, providers=providers, timeouts=timeouts, record_use=record_use)
    secrets.subscribe(models.refresh_agent)
    return models


def _build_git_maintenance(drivers: Drivers, lifecycle: LifecycleServices) -> RepositoryMaintenance:
    return RepositoryMaintenance(lifecycle.host_agents, drivers.git.collector, lifecycle.history.list_commits)


def _build_git_service(
    core: CoreServices,
    drivers: Drivers,
    repository: AgentRepository,
    runtimes: AgentRuntimes,
    lifecycle: LifecycleServices,
    logs: LogService,
) -> AgentGitService:
    return AgentGitService(
        db=core.db,
        queue=core.operations,
        agents=repository,
        runtimes=runtimes,
        repositories=drivers.git,
        recovery=lifecycle.pushes,
        build=PushBuild(core.db, core.operations, lifecycle.scripts, logs),
        origin=core.addresses.agent_origin,
        make_current=lifecycle.automatic_snapshots.commit_changes,
        expect_committed=partial(expect_committed, core.db, lifecycle.snapshots),
        open_workspace=lifecycle.start.open_workspace,
        restore_files=lifecycle.agent_skills.restore_files,
    )


def _build_instances(
    core: CoreServices,
    runtimes: AgentRuntimes,
    secrets: SecretService,
    channels: ChannelRepository,
    validator: ChannelValidator,
    models: ModelGateway,
    templates: TemplateService,
) -> TemplateInstanceService:
    return TemplateInstanceService(
        core.db,
        runtimes,
        secrets,
        SecretEnvironment(core.db, core.sealer),
        channels,
        validator,
        partial(_list_models, models),
        TaskImport.enqueue,
        templates.find_latest,
    )


async def _list_models(models: ModelGateway, agent_id: str) -> Collection[str] | None:
    """Return the ids of the models that an agent is offered, None if a provider did not list its own."""
    offer = await models.get_offer(agent_id)
    return offer.ids if offer.complete else None


def _disk_options(settings: Settings) -> dict[str, Any]:
    ballast = DiskBallast(settings.data / "ballast", BALLAST_BYTES)
    return {"disk_reserve": settings.disk_reserve, "snapshot_delay": settings.snapshot_delay, "ballast": ballast}


def _container_limits(settings: Settings) -> ContainerLimits:
    return ContainerLimits(
        memory_bytes=settings.agent_memory,
        cpus=settings.agent_cpus,
        pids=settings.agent_pids,
        disk_bytes=settings.agent_disk,
    )


async def start_agent_services(agents: AgentServices, runtime: Runtime, stack: AsyncExitStack) -> None:
    """Register the host, adopt its agents that run and start the others; `stack` ends all of them cleanly.

    Raises HostRunning, and RuntimeFailed when no container can be started.
    """
    stack.push_async_callback(agents.hosts.stop)
    await agents.hosts.start()
    if not await runtime.list():  # one that runs proves the same, and a new one takes long on a busy machine
        capabilities = await runtime.probe()
        if not capabilities.usable:
            raise RuntimeFailed(f"No container can be started here: {capabilities.error}")
    stack.push_async_callback(agents.routes.mirror.stop)
    await agents.routes.remove_closed()
    await agents.domains.close_warden_ports()
    await agents.routes.mirror.start()
    stack.push_async_callback(agents.repository.last_uses.stop)
    agents.repository.last_uses.start()
    stack.push_async_callback(agents.models.stop)
    await agents.models.start()
    stack.push_async_callback(agents.relays.close_all)
    stack.push_async_callback(agents.lifecycle.reconciler.stop)
    await agents.lifecycle.reconciler.start()
    if (ports := agents.repository.ports) is not None:  # after the adoption of agents, before operations start them
        stack.push_async_callback(ports.stop)
        await ports.start()
    agents.secrets.subscribe(lambda _: agents.lifecycle.reconciler.wake())  # an agent may wait for that
    stack.push_async_callback(agents.lifecycle.automatic_snapshots.stop)
    agents.lifecycle.automatic_snapshots.start()
    stack.push_async_callback(agents.lifecycle.disk_guard.stop)
    await agents.lifecycle.disk_guard.start(agents.lifecycle.reconciler.wake)
    stack.push_async_callback(agents.git_maintenance.stop)
    agents.git_maintenance.start()
    stack.push_async_callback(agents.skill_checks.stop)
    agents.skill_checks.start()
    await agents.git.enqueue_unfinished_pushes(agents.lifecycle.host_agents)


def _agent_quotas(settings: Settings) -> Mapping[Plan, int]:
    return {Plan.FREE: settings.quota_free, Plan.PAID: settings.quota_paid}


async def _get_private_values(
    core: CoreServices,
    repository: AgentRepository,
    environment: SecretEnvironment,
    channels: ChannelRepository,
    agent_id: str,
) -> Mapping[str, Sensitive[str]]:
    """Return the values by name that an agent's logs mask and its snapshots leave out."""
    return {
        "gateway token": await core.gateway_tokens.read(agent_id),
        "internal token": await repository.get_internal_token(agent_id),
        "platform token": await core.platform_tokens.get_prefix(),
        **await channels.get_private_values(agent_id),
        **await environment.get_private_values(agent_id),
    }
