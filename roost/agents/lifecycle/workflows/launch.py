"""Launch: creates a new agent's row, tokens and start operation in one transaction, and waits for its gateway."""

from collections.abc import Mapping
from dataclasses import replace

from sqlalchemy import Connection

from roost import work
from roost.agents.library.skills.attachments import AgentSkillService
from roost.agents.lifecycle.workflows import model
from roost.agents.lifecycle.workflows.errors import AgentStartFailed, UnknownEngine
from roost.agents.lifecycle.workflows.model import CreateAgent, ImportedSnapshot
from roost.agents.network.routes.service import RouteService
from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.model import Agent, AgentState
from roost.agents.setup.channels.repository import ChannelRepository
from roost.agents.setup.channels.validator import ChannelValidator
from roost.agents.setup.secrets.service import SecretService
from roost.agents.workspace.snapshots.model import RESTORE_SECONDS, Snapshot
from roost.agents.workspace.snapshots.service import SnapshotService
from roost.drivers.engine.contract import Engine, EngineNotInstalled
from roost.identity import tenants
from roost.identity.caller import Caller, Plan
from roost.identity.gateway_tokens import GatewayTokens
from roost.work import OperationState, OperationWorker


class LaunchWorkflow:
    def __init__(
        self,
        queue: OperationWorker,
        tokens: GatewayTokens,
        runtimes: AgentRuntimes,
        secrets: SecretService,
        channel_validator: ChannelValidator,
        channels: ChannelRepository,
        snapshots: SnapshotService,
        skills: AgentSkillService,
        routes: RouteService,
    ) -> None:
        self._db = queue.db
        self._queue = queue
        self._agents = runtimes.agents
        self._tokens = tokens
        self._runtimes = runtimes
        self._secrets = secrets
        self._channel_validator = channel_validator
        self._channels = channels
        self._snapshots = snapshots
        self._skills = skills
        self._routes = routes

    async def create(self, caller: Caller, request: CreateAgent, imported: ImportedSnapshot | None = None) -> Agent:
        """Create an agent and return it once it runs; `imported` takes the place of the request's snapshot.

        Raises UnknownEngine, EngineNotInstalled, AgentLimitReached, the errors of `ImportedSnapshot.publish`,
        `ChannelValidator.validate_all`, `SecretService.attach_in_transaction`,
        `AgentSkillService.attach_in_transaction`, `ChannelRepository.save_in_transaction` and
        `SnapshotService.find_for_tenant`, and AgentStartFailed with the agent if its workspace could not be restored or
        the gateway did not start.
        """
        engine = self._select_engine(request.engine)
        plan = await self.get_plan(caller)
        installed = engine.installed()
        preferred = (request.engine_version or engine.default_version, engine.default_version)
        version = next((one for one in preferred if one in installed), installed[0])
        snapshot = imported.snapshot if imported else None
        if request.snapshot_cid is not None:
            snapshot = await self._snapshots.find_for_tenant(caller.tenant_id, request.snapshot_cid)
            snapshot, version = await self._match_engine(snapshot, engine, version)
        origin_id = snapshot.agent_id if snapshot and not imported else None
        channels = await self._channel_validator.validate_all(request.channels, plan, engine, version)

        def add(connection: Connection) -> tuple[Agent, str]:
            agent = self._agents.create(connection, caller.tenant_id, request.profile, engine.id, version)
            self._tokens.mint(connection, agent.id, caller.tenant_id)
            self._secrets.attach_in_transaction(connection, caller.tenant_id, agent.id, request.secret_ids)
            self._attach_skills(connection, agent, request, origin_id)
            if origin_id is not None:
                self._routes.copy(connection, origin_id, agent)
            self._channels.save_in_transaction(connection, agent.id, channels)
            if imported is not None:
                imported.publish(connection, agent)
            if snapshot is not None:
                return agent, self._snapshots.enqueue_restore(connection, agent, snapshot, then=model.START)
            return agent, work.add_operation(connection, model.START, agent.id, host=agent.host_id).id

        agent, operation_id = await self._db.write(add)
        if snapshot is not None:
            operation_id = await self._wait_until_restored(agent, operation_id)
        operation = await self._queue.wait(operation_id, timeout=engine.start_deadline + model.START_GRACE)
        agent = await self._agents.get(agent.id)
        if operation.state is not OperationState.DONE:
            raise AgentStartFailed(agent)
        return agent

    async def get_plan(self, caller: Caller) -> Plan:
        return (await self._db.read(lambda connection: tenants.get_tenant(connection, caller.tenant_id))).plan

    def _attach_skills(self, connection: Connection, agent: Agent, request: CreateAgent, origin_id: str | None) -> None:
        """Attach the skills of the request, and to a fork those that its origin has."""
        if origin_id is not None:
            self._skills.copy_attachments(connection, origin_id, agent.id)
        acknowledged = request.acknowledges_skills
        self._skills.attach_in_transaction(
            connection, agent.tenant_id, agent.id, request.skill_cids, acknowledged=acknowledged
        )

    async def _match_engine(self, snapshot: Snapshot, engine: Engine, version: str) -> tuple[Snapshot, str]:
        """Return the snapshot without a state of another engine, and the version that can read its state."""
        origin = await self._agents.get(snapshot.agent_id)
        if origin.engine != engine.id:
            return replace(snapshot, state_cid=None, state_files=0, state_size=0, state_packs=()), version
        return snapshot, origin.engine_version if origin.engine_version in engine.installed() else version

    async def _wait_until_restored(self, agent: Agent, operation_id: str) -> str:
        """Return the id of the start, which follows the restored workspace. Raises AgentNotFound, AgentStartFailed."""
        operation = await self._queue.wait(operation_id, timeout=RESTORE_SECONDS)
        await self._agents.get(agent.id)  # raises if it was deleted meanwhile
        if operation.state is OperationState.DONE:
            return operation.result["then"]
        error: Mapping[str, str] = operation.error or {"message": "it takes too long"}
        reason = f"The workspace could not be restored: {error['message']}"
        await self._db.write(lambda connection: self._agents.set_state(connection, agent.id, AgentState.FAILED, reason))
        raise AgentStartFailed(await self._agents.get(agent.id))

    def _select_engine(self, engine_id: str | None) -> Engine:
        offered = self._runtimes.list_engines()
        if not offered:
            raise EngineNotInstalled
        if engine_id is None:
            return offered[0]
        for engine in offered:
            if engine.id == engine_id:
                return engine
        known = ", ".join(engine.id for engine in offered)
        raise UnknownEngine(detail=f"engine must be one of {known}, got {engine_id!r}")
