"""The workflows of an agent's life: create, start, restart, update, delete, and the reconciler."""

from dataclasses import dataclass

from roost.agents.library.instances.service import TemplateInstanceService
from roost.agents.library.skills.attachments import AgentSkillService
from roost.agents.library.skills.delivery import SkillDelivery
from roost.agents.library.skills.requirements import RefusesHost, SkillRequirements
from roost.agents.library.skills.service import SkillService
from roost.agents.lifecycle.versions.service import Prepare, VersionService
from roost.agents.lifecycle.workflows import model
from roost.agents.lifecycle.workflows.delete import DeleteWorkflow
from roost.agents.lifecycle.workflows.details import AgentDetails
from roost.agents.lifecycle.workflows.disk_guard import DiskGuard
from roost.agents.lifecycle.workflows.gateway import GatewayStarter, LoadStartupInputs, Origin
from roost.agents.lifecycle.workflows.launch import LaunchWorkflow
from roost.agents.lifecycle.workflows.model import AgentRelays, TrustedAuthorities
from roost.agents.lifecycle.workflows.reconcile import AgentReconciler
from roost.agents.lifecycle.workflows.restart import RestartWorkflow
from roost.agents.lifecycle.workflows.start import StartWorkflow
from roost.agents.lifecycle.workflows.update import UpdateWorkflow
from roost.agents.network.domains.service import AgentDomainService
from roost.agents.network.routes.service import RouteService
from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.host_agents import HostAgents
from roost.agents.registry.repository import AgentRepository
from roost.agents.setup.channels.repository import ChannelRepository
from roost.agents.setup.channels.validator import ChannelValidator
from roost.agents.setup.secrets.service import SecretService
from roost.agents.workspace.git.recovery import PushRecovery
from roost.agents.workspace.scripts.model import BUILD_TIMEOUT_SECONDS, OPERATION_KIND
from roost.agents.workspace.scripts.service import ScriptService
from roost.agents.workspace.snapshots.automatic import AutomaticSnapshots
from roost.agents.workspace.snapshots.history import SnapshotHistory
from roost.agents.workspace.snapshots.service import SnapshotService
from roost.agents.workspace.snapshots.taking import LoadSecrets
from roost.core.db import Database
from roost.core.machine.disk_space import DiskBallast
from roost.core.seal import Sealer
from roost.drivers.git.contract import GitRepositories
from roost.drivers.runtime.contract import ContainerLimits, Runtime
from roost.identity.gateway_tokens import GatewayTokens
from roost.identity.token_reads import TokenReads
from roost.storage.content.service import ContentService
from roost.work import OperationWorker


@dataclass(frozen=True)
class LifecycleServices:
    host_agents: HostAgents
    starter: GatewayStarter
    versions: VersionService
    scripts: ScriptService
    details: AgentDetails
    launch: LaunchWorkflow
    restart: RestartWorkflow
    start: StartWorkflow
    update: UpdateWorkflow
    delete: DeleteWorkflow
    snapshots: SnapshotService
    history: SnapshotHistory
    pushes: PushRecovery
    automatic_snapshots: AutomaticSnapshots
    reconciler: AgentReconciler
    disk_guard: DiskGuard
    agent_skills: AgentSkillService


def build_lifecycle_services(
    *,
    db: Database,
    operations: OperationWorker,
    repository: AgentRepository,
    runtimes: AgentRuntimes,
    runtime: Runtime,
    relays: AgentRelays,
    gateway_tokens: GatewayTokens,
    token_reads: TokenReads,
    git: GitRepositories,
    content: ContentService,
    sealer: Sealer,
    get_private_values: LoadSecrets,
    secrets: SecretService,
    channels: ChannelRepository,
    channel_validator: ChannelValidator,
    origin: Origin,
    startup_inputs: LoadStartupInputs,
    instances: TemplateInstanceService,
    prepare_version: Prepare,
    limits: ContainerLimits,
    trust: TrustedAuthorities,
    skill_library: SkillService,
    routes: RouteService,
    domains: AgentDomainService,
    refuses_host: RefusesHost,
    disk_reserve: int = 0,
    ballast: DiskBallast | None = None,
    reconcile_seconds: float = 5.0,
    snapshot_delay: float = 60.0,
    build_seconds: float = BUILD_TIMEOUT_SECONDS,
) -> LifecycleServices:
    """Build the workflows and register their operations."""
    host_agents = HostAgents(db, repository.host_id)
    starter = GatewayStarter(repository, runtimes, origin, startup_inputs)
    versions = VersionService(repository, runtimes, prepare_version)
    scripts = ScriptService(db, repository, runtimes, origin, startup_inputs, build_seconds)
    disk = DiskGuard(runtime, limits.disk_bytes, disk_reserve, ballast)
    pushes = PushRecovery(db, runtimes, git)
    delivery, ready = SkillDelivery(db, skill_library), instances.prepare
    start = StartWorkflow(
        repository, runtimes, runtime, relays, starter, versions, scripts, limits, trust, disk, pushes, delivery, ready
    )
    requirements = SkillRequirements(secrets, runtimes, refuses_host)
    skills = AgentSkillService(db, operations, repository, runtimes, delivery, requirements, start.open_workspace)
    history = SnapshotHistory(db, operations, repository, content.reader, git)
    snapshots = SnapshotService(
        db,
        operations,
        repository,
        content,
        start.open_workspace,
        get_private_values,
        sealer.digest,
        history,
        runtimes,
        start,
        skills.enqueue_delivery,
    )
    details = AgentDetails(
        *(db, repository, runtimes, token_reads, secrets, origin, scripts, snapshots, skills, instances, routes)
    )
    update = UpdateWorkflow(db, operations, repository, runtimes, versions, start, snapshots)
    delete = DeleteWorkflow(db, operations, repository, gateway_tokens, runtime, relays, git, routes, domains)
    launch = LaunchWorkflow(
        *(db, operations, repository, gateway_tokens, runtimes, secrets, channel_validator, channels),
        *(snapshots, skills, routes),
    )
    _handle_operations(operations, runtime, start, update, scripts, delete)
    return LifecycleServices(
        host_agents=host_agents,
        starter=starter,
        versions=versions,
        scripts=scripts,
        details=details,
        launch=launch,
        restart=RestartWorkflow(db, operations, repository, runtimes, details, versions, snapshots),
        start=start,
        update=update,
        delete=delete,
        snapshots=snapshots,
        history=history,
        pushes=pushes,
        automatic_snapshots=AutomaticSnapshots(host_agents, runtimes, snapshots, snapshot_delay),
        reconciler=AgentReconciler(
            db, repository, host_agents, runtimes, runtime, relays, starter, instances.find_startable, reconcile_seconds
        ),
        disk_guard=disk,
        agent_skills=skills,
    )


def _handle_operations(
    operations: OperationWorker,
    runtime: Runtime,
    start: StartWorkflow,
    update: UpdateWorkflow,
    scripts: ScriptService,
    delete: DeleteWorkflow,
) -> None:
    operations.handle(
        model.START,
        start.handle,
        retries=model.START_RETRIES,
        slots=runtime.start_slots,
        on_failure=start.mark_failed,
    )
    operations.handle(model.UPDATE, update.handle, on_failure=start.mark_failed)
    operations.handle(OPERATION_KIND, scripts.handle, on_failure=scripts.mark_failed)
    operations.handle(model.DELETE, delete.handle, retries=10, on_failure=delete.try_later)
