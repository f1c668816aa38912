"""The workflows of an agent's life: create, start, restart, update, delete, and the reconciler.

A start is built first: snapshots open workspaces by it, and workflows take snapshots.
"""

from collections.abc import Callable
from dataclasses import dataclass

from roost.agents.library.instances.service import TemplateInstanceService
from roost.agents.library.skills.attachments import AgentSkillService, SkillRequirements
from roost.agents.library.skills.delivery import SkillDelivery
from roost.agents.library.skills.service import SkillService
from roost.agents.lifecycle.versions.service import Prepare, VersionService
from roost.agents.lifecycle.workflows import model, start_steps
from roost.agents.lifecycle.workflows.delete import DeleteWorkflow
from roost.agents.lifecycle.workflows.details import AgentDetails
from roost.agents.lifecycle.workflows.disk_guard import DiskGuard
from roost.agents.lifecycle.workflows.gateway import GatewayStarter, LoadStartupInputs
from roost.agents.lifecycle.workflows.launch import LaunchWorkflow
from roost.agents.lifecycle.workflows.model import AgentRelays, TrustedAuthorities
from roost.agents.lifecycle.workflows.move import MoveWorkflow
from roost.agents.lifecycle.workflows.move_targets import MoveTargets, OtherServers
from roost.agents.lifecycle.workflows.reconcile import AgentReconciler
from roost.agents.lifecycle.workflows.restart import RestartWorkflow
from roost.agents.lifecycle.workflows.start import StartWorkflow
from roost.agents.lifecycle.workflows.update import UpdateWorkflow
from roost.agents.network.domains.service import AgentDomainService
from roost.agents.network.routes.service import RouteService
from roost.agents.registry.agent_runtimes import AgentRuntimes, LoadValues
from roost.agents.registry.repository import HostAgents
from roost.agents.setup.channels.repository import ChannelRepository
from roost.agents.setup.channels.validator import ChannelValidator
from roost.agents.setup.secrets.service import SecretService
from roost.agents.workspace.git.recovery import PushRecovery
from roost.agents.workspace.scripts.model import BUILD_TIMEOUT_SECONDS, OPERATION_KIND
from roost.agents.workspace.scripts.service import ScriptService
from roost.agents.workspace.snapshots.automatic import AutomaticSnapshots
from roost.agents.workspace.snapshots.history import SnapshotHistory
from roost.agents.workspace.snapshots.service import SnapshotService
from roost.agents.workspace.snapshots.taking import SnapshotTaker
from roost.core.machine.disk_space import DiskBallast
from roost.core.seal import Sealer
from roost.drivers.git.contract import GitRepositories
from roost.drivers.runtime.contract import ContainerLimits
from roost.identity.gateway_tokens import GatewayTokens, TokenReads
from roost.storage.content.service import ContentService
from roost.web.service_registry import ServiceGroup
from roost.work import OperationWorker


@dataclass(frozen=True)
class RegistryServices(ServiceGroup):
    """The agents of this host, their containers and tokens."""

    operations: OperationWorker
    runtimes: AgentRuntimes
    host_agents: HostAgents
    relays: AgentRelays
    tokens: GatewayTokens
    token_reads: TokenReads
    sealer: Sealer
    origin: Callable[[str], str]


@dataclass(frozen=True)
class StoredSetup(ServiceGroup):
    """What is stored of the setup of agents, for the services that start them with it."""

    secrets: SecretService
    channels: ChannelRepository
    channel_validator: ChannelValidator
    load_private_values: LoadValues


@dataclass(frozen=True)
class NetworkServices(ServiceGroup):
    """Services that lead requests to an agent's own programs."""

    routes: RouteService
    domains: AgentDomainService


@dataclass(frozen=True)
class LibraryServices(ServiceGroup):
    skills: SkillService
    delivery: SkillDelivery
    requirements: SkillRequirements
    instances: TemplateInstanceService


@dataclass(frozen=True)
class LifecycleOptions:
    """`ballast` is freed when the disk is full; times are in seconds, `disk_reserve` in bytes."""

    limits: ContainerLimits
    trust: TrustedAuthorities
    prepare_version: Prepare
    disk_reserve: int = 0
    ballast: DiskBallast | None = None
    reconcile_seconds: float = 5.0
    snapshot_delay: float = 60.0
    build_seconds: float = BUILD_TIMEOUT_SECONDS


@dataclass(frozen=True)
class StartServices(ServiceGroup):
    versions: VersionService
    scripts: ScriptService
    disk_guard: DiskGuard
    pushes: PushRecovery
    starter: GatewayStarter
    start: StartWorkflow
    move: MoveWorkflow


@dataclass(frozen=True)
class SnapshotServices(ServiceGroup):
    """Snapshots of workspaces, and the skills that are delivered into these."""

    history: SnapshotHistory
    snapshots: SnapshotService
    automatic: AutomaticSnapshots
    skills: AgentSkillService


@dataclass(frozen=True)
class LifecycleServices(ServiceGroup):
    start: StartServices
    workspace: SnapshotServices
    details: AgentDetails
    launch: LaunchWorkflow
    restart: RestartWorkflow
    update: UpdateWorkflow
    delete: DeleteWorkflow
    reconciler: AgentReconciler


def build_lifecycle_services(
    registry: RegistryServices,
    setup: StoredSetup,
    network: NetworkServices,
    library: LibraryServices,
    start: StartServices,
    content: ContentService,
    options: LifecycleOptions,
) -> LifecycleServices:
    """Build the workflows and register their operations."""
    operations, runtimes, tokens = registry.operations, registry.runtimes, registry.tokens
    secrets, channels, instances = setup.secrets, setup.channels, library.instances
    workspace = _build_snapshot_services(registry, setup, library, start, content, options)
    snapshots, skills = workspace.snapshots, workspace.skills
    details = AgentDetails(
        operations.db,
        runtimes,
        registry.token_reads,
        secrets,
        registry.origin,
        start.scripts,
        snapshots,
        skills,
        instances,
        network.routes,
    )
    services = LifecycleServices(
        start=start,
        workspace=workspace,
        details=details,
        launch=LaunchWorkflow(
            operations, tokens, runtimes, secrets, setup.channel_validator, channels, skills, network.routes
        ),
        restart=RestartWorkflow(operations, runtimes, details, start.versions, snapshots),
        update=UpdateWorkflow(operations, runtimes, start.versions, start.start, snapshots),
        delete=DeleteWorkflow(
            operations, runtimes, tokens, registry.relays, start.pushes.repositories, network.routes, network.domains
        ),
        reconciler=AgentReconciler(
            operations.db,
            registry.host_agents,
            runtimes,
            registry.relays,
            start.starter,
            instances.find_startable,
            options.reconcile_seconds,
        ),
    )
    _handle_operations(registry, services)
    return services


def build_start_services(
    registry: RegistryServices,
    library: LibraryServices,
    load_inputs: LoadStartupInputs,
    git: GitRepositories,
    options: LifecycleOptions,
    others: OtherServers,
) -> StartServices:
    db, runtimes = registry.operations.db, registry.runtimes
    starter = GatewayStarter(runtimes, registry.origin, load_inputs)
    versions = VersionService(runtimes, options.prepare_version)
    scripts = ScriptService(db, runtimes, registry.origin, load_inputs, options.build_seconds)
    disk = DiskGuard(runtimes.runtime, options.limits.disk_bytes, options.disk_reserve, options.ballast)
    pushes = PushRecovery(db, runtimes, git)
    start = StartWorkflow(
        runtimes,
        scripts,
        pushes,
        first=(start_steps.VersionStep(runtimes, versions, starter), start_steps.NeedsStep(library.instances)),
        container=(
            start_steps.EngineStep(runtimes),
            start_steps.DiskStep(disk),
            start_steps.RelayStep(registry.relays),
            start_steps.ContainerStep(runtimes.runtime, options.limits, options.trust),
        ),
        gateway=(
            start_steps.PushStep(pushes),
            start_steps.SkillStep(runtimes, library.delivery),
            start_steps.GatewayStep(starter),
        ),
    )
    targets = MoveTargets(
        runtimes,
        registry.host_agents,
        git,
        others,
        options.limits,
        options.trust,
        options.disk_reserve,
    )
    targets.serve_peers()
    move = MoveWorkflow(registry.operations, runtimes, start, pushes, registry.relays, targets)
    return StartServices(versions, scripts, disk, pushes, starter, start, move)


def _build_snapshot_services(
    registry: RegistryServices,
    setup: StoredSetup,
    library: LibraryServices,
    start: StartServices,
    content: ContentService,
    options: LifecycleOptions,
) -> SnapshotServices:
    operations, runtimes, workspaces = registry.operations, registry.runtimes, start.start
    skills = AgentSkillService(operations, runtimes, library.delivery, library.requirements, workspaces.open_workspace)
    history = SnapshotHistory(operations.db, operations, runtimes.agents, content.reader, start.pushes.repositories)
    taker = SnapshotTaker(operations.db, content, runtimes, setup.load_private_values, registry.sealer.digest, history)
    snapshots = SnapshotService(operations, content, history, taker, runtimes, workspaces, skills.enqueue_delivery)
    automatic = AutomaticSnapshots(registry.host_agents, runtimes, snapshots, options.snapshot_delay)
    return SnapshotServices(history, snapshots, automatic, skills)


def _handle_operations(registry: RegistryServices, services: LifecycleServices) -> None:
    operations, starts, delete = registry.operations, services.start, services.delete
    start, scripts = starts.start, starts.scripts
    operations.handle(
        model.START,
        start.handle,
        retries=model.START_RETRIES,
        slots=registry.runtimes.runtime.start_slots,
        on_failure=start.mark_failed,
    )
    operations.handle(model.UPDATE, services.update.handle, on_failure=start.mark_failed)
    operations.handle(model.MOVE, starts.move.handle, retries=10, on_failure=start.mark_failed)
    operations.handle(OPERATION_KIND, scripts.handle, on_failure=scripts.mark_failed)
    operations.handle(model.DELETE, delete.handle, retries=10, on_failure=delete.try_later)
