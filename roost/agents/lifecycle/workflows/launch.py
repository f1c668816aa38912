"""Launch: creates a new agent's row, tokens and start operation in one transaction, and waits for its gateway."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection

from roost import work
from roost.agents.library.skills.attachments import AgentSkillService
from roost.agents.lifecycle.workflows import model
from roost.agents.lifecycle.workflows.model import AgentStartFailed, LaunchSource, UnknownEngine
from roost.agents.network.routes.service import RouteService
from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.model import Agent, AgentState
from roost.agents.setup.channels.repository import ChannelRepository
from roost.agents.setup.channels.validator import ChannelValidator
from roost.agents.setup.secrets.service import SecretService
from roost.agents.workspace.snapshots.model import RESTORE_SECONDS
from roost.agents.workspace.snapshots.service import SnapshotService
from roost.drivers.engine.contract import Engine, EngineNotInstalled
from roost.identity.caller import Caller
from roost.identity.gateway_tokens import GatewayTokens
from roost.work import OperationState, OperationWorker


@dataclass(frozen=True)
class LaunchWorkflow:
    _queue: OperationWorker
    _tokens: GatewayTokens
    _runtimes: AgentRuntimes
    _secrets: SecretService
    _channel_validator: ChannelValidator
    _channels: ChannelRepository
    _skills: AgentSkillService
    _routes: RouteService

    async def create(self, caller: Caller, source: LaunchSource) -> Agent:
        """Create an agent and return it once it runs.

        Raises UnknownEngine, EngineNotInstalled, AgentLimitReached, the errors of `LaunchSource.fill`,
        `ChannelValidator.validate_all`, `SecretService.attach_in_transaction`,
        `AgentSkillService.attach_in_transaction` and `ChannelRepository.save_in_transaction`, and AgentStartFailed with
        the agent if its workspace could not be restored or the gateway did not start.
        """
        request, snapshot, origin_id = source.request, source.snapshot, source.origin_id
        engine = select_engine(self._runtimes, request.engine)
        plan, _ = await self._runtimes.agents.get_limit(caller.tenant_id)
        installed = engine.installed()
        preferred = (request.engine_version or engine.default_version, engine.default_version)
        version = next((one for one in preferred if one in installed), installed[0])
        channels = await self._channel_validator.validate_all(request.channels, plan, engine, version)

        def add(connection: Connection) -> tuple[Agent, str]:
            agent = self._runtimes.agents.create(connection, caller.tenant_id, request.profile, engine.id, version)
            self._tokens.mint(connection, agent.id, caller.tenant_id)
            self._secrets.attach_in_transaction(connection, caller.tenant_id, agent.id, request.secret_ids)
            if origin_id is not None:
                self._skills.copy_attachments(connection, origin_id, agent.id)
                self._routes.copy(connection, origin_id, agent)
            acknowledged = request.acknowledges_skills
            self._skills.attach_in_transaction(
                connection, agent.tenant_id, agent.id, request.skill_cids, acknowledged=acknowledged
            )
            self._channels.save_in_transaction(connection, agent.id, channels)
            if source.fill is not None:
                source.fill(connection, agent)
            if snapshot is not None:
                return agent, SnapshotService.enqueue_restore(connection, agent, snapshot, then=model.START)
            return agent, work.add_operation(connection, model.START, agent.id, host=agent.host_id).id

        agent, operation_id = await self._queue.db.write(add)
        if snapshot is not None:
            operation_id = await self._wait_until_restored(agent, operation_id)
        operation = await self._queue.wait(
            operation_id, engine.start_deadline + model.START_GRACE, queue_timeout=model.QUEUE_SECONDS
        )
        agent = await self._runtimes.agents.get(agent.id)
        if operation.state is not OperationState.DONE:
            raise AgentStartFailed(agent)
        return agent

    async def _wait_until_restored(self, agent: Agent, operation_id: str) -> str:
        """Return the id of the start, which follows the restored workspace. Raises AgentNotFound, AgentStartFailed."""
        agents = self._runtimes.agents
        operation = await self._queue.wait(operation_id, timeout=RESTORE_SECONDS)
        await agents.get(agent.id)  # raises if it was deleted meanwhile
        if operation.state is OperationState.DONE:
            return operation.result["then"]
        error: Mapping[str, str] = operation.error or {"message": "it takes too long"}
        reason = f"The workspace could not be restored: {error['message']}"
        await self._queue.db.write(lambda connection: agents.set_state(connection, agent.id, AgentState.FAILED, reason))
        raise AgentStartFailed(await agents.get(agent.id))


def select_engine(runtimes: AgentRuntimes, engine_id: str | None) -> Engine:
    """Return the engine of a request, the preferred one if it names none. Raises UnknownEngine, EngineNotInstalled."""
    offered = runtimes.list_engines()
    if not offered:
        raise EngineNotInstalled
    if engine_id is None:
        return offered[0]
    for engine in offered:
        if engine.id == engine_id:
            return engine
    known = ", ".join(engine.id for engine in offered)
    raise UnknownEngine(detail=f"engine must be one of {known}, got {engine_id!r}")
