"""The workflows of an agent's life: create, start, restart, update, delete, and the reconciler."""

from dataclasses import dataclass

from roost.agents.channels.repository import ChannelRepository
from roost.agents.channels.validator import ChannelValidator
from roost.agents.lifecycle import model
from roost.agents.lifecycle.delete import DeleteWorkflow
from roost.agents.lifecycle.details import AgentDetails
from roost.agents.lifecycle.gateway import GatewayStarter, LoadStartupInputs, Origin
from roost.agents.lifecycle.launch import LaunchWorkflow
from roost.agents.lifecycle.model import AgentRelays, TrustedAuthorities
from roost.agents.lifecycle.reconcile import AgentReconciler
from roost.agents.lifecycle.restart import RestartWorkflow
from roost.agents.lifecycle.start import StartWorkflow
from roost.agents.lifecycle.update import UpdateWorkflow
from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.host_agents import HostAgents
from roost.agents.registry.repository import AgentRepository
from roost.agents.scripts.model import BUILD_TIMEOUT_SECONDS, OPERATION_KIND
from roost.agents.scripts.service import ScriptService
from roost.agents.secrets.service import SecretService
from roost.agents.versions.service import Prepare, VersionService
from roost.core.db import Database
from roost.drivers.runtime.contract import ContainerLimits, Runtime
from roost.identity.gateway_tokens import GatewayTokens
from roost.work import OperationWorker


@dataclass(frozen=True)
class LifecycleServices:
    starter: GatewayStarter
    versions: VersionService
    scripts: ScriptService
    details: AgentDetails
    launch: LaunchWorkflow
    restart: RestartWorkflow
    start: StartWorkflow
    update: UpdateWorkflow
    delete: DeleteWorkflow
    reconciler: AgentReconciler


def build_lifecycle_services(
    *,
    db: Database,
    operations: OperationWorker,
    repository: AgentRepository,
    runtimes: AgentRuntimes,
    runtime: Runtime,
    relays: AgentRelays,
    gateway_tokens: GatewayTokens,
    secrets: SecretService,
    channels: ChannelRepository,
    channel_validator: ChannelValidator,
    origin: Origin,
    startup_inputs: LoadStartupInputs,
    prepare_version: Prepare,
    limits: ContainerLimits,
    trust: TrustedAuthorities,
    reconcile_seconds: float = 5.0,
    build_seconds: float = BUILD_TIMEOUT_SECONDS,
) -> LifecycleServices:
    """Build the workflows and register their operations."""
    host_agents = HostAgents(db, repository.host_id)
    starter = GatewayStarter(repository, runtimes, origin, startup_inputs)
    versions = VersionService(repository, runtimes, prepare_version)
    scripts = ScriptService(db, repository, runtimes, origin, startup_inputs, build_seconds)
    details = AgentDetails(repository, runtimes, gateway_tokens, secrets, origin, scripts)
    start = StartWorkflow(repository, runtimes, runtime, relays, starter, versions, scripts, limits, trust)
    update = UpdateWorkflow(db, operations, repository, runtimes, versions, start)
    delete = DeleteWorkflow(db, operations, repository, gateway_tokens, runtime, relays)
    operations.handle(model.START, start.handle, retries=model.START_RETRIES)
    operations.handle(model.UPDATE, update.handle)
    operations.handle(OPERATION_KIND, scripts.handle)
    operations.handle(model.DELETE, delete.handle, retries=10)
    return LifecycleServices(
        starter=starter,
        versions=versions,
        scripts=scripts,
        details=details,
        launch=LaunchWorkflow(
            db, operations, repository, gateway_tokens, runtimes, secrets, channel_validator, channels
        ),
        restart=RestartWorkflow(db, operations, repository, runtimes, details, versions),
        start=start,
        update=update,
        delete=delete,
        reconciler=AgentReconciler(
            db, repository, host_agents, runtimes, runtime, relays, starter, interval=reconcile_seconds
        ),
    )
