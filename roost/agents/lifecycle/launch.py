"""Launch: creates a new agent's row, tokens and start operation in one transaction, and waits for its gateway."""

from sqlalchemy import Connection

from roost import work
from roost.agents.channels.repository import ChannelRepository
from roost.agents.channels.validator import ChannelValidator
from roost.agents.lifecycle import model
from roost.agents.lifecycle.errors import AgentStartFailed, UnknownEngine
from roost.agents.lifecycle.model import CreateAgent
from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.model import Agent
from roost.agents.registry.repository import AgentRepository
from roost.agents.secrets.service import SecretService
from roost.core.db import Database
from roost.drivers.engine.contract import Engine, EngineNotInstalled
from roost.identity import tenants
from roost.identity.caller import Caller
from roost.identity.gateway_tokens import GatewayTokens
from roost.work import OperationState, OperationWorker


class LaunchWorkflow:
    def __init__(
        self,
        db: Database,
        queue: OperationWorker,
        agents: AgentRepository,
        tokens: GatewayTokens,
        runtimes: AgentRuntimes,
        secrets: SecretService,
        channel_validator: ChannelValidator,
        channels: ChannelRepository,
    ) -> None:
        self._db = db
        self._queue = queue
        self._agents = agents
        self._tokens = tokens
        self._runtimes = runtimes
        self._secrets = secrets
        self._channel_validator = channel_validator
        self._channels = channels

    async def create(self, caller: Caller, request: CreateAgent) -> Agent:
        """Create an agent and return it once it runs.

        Raises UnknownEngine, EngineNotInstalled, AgentLimitReached, the errors of `ChannelValidator.validate_all`,
        `SecretService.attach_in_transaction` and `ChannelRepository.save_in_transaction`, and AgentStartFailed with
        the agent if the gateway did not start.
        """
        engine = self._select_engine(request.engine)
        plan = (await self._db.read(lambda connection: tenants.get_tenant(connection, caller.tenant_id))).plan
        installed = engine.installed()
        version = engine.default_version if engine.default_version in installed else installed[0]
        channels = await self._channel_validator.validate_all(request.channels, plan, engine, version)

        def add(connection: Connection) -> tuple[Agent, str]:
            agent = self._agents.create(connection, caller.tenant_id, request.profile, engine.id, version)
            self._tokens.mint(connection, agent.id, caller.tenant_id)
            self._secrets.attach_in_transaction(connection, caller.tenant_id, agent.id, request.secret_ids)
            self._channels.save_in_transaction(connection, agent.id, channels)
            return agent, work.add_operation(connection, model.START, agent.id, host=agent.host_id).id

        agent, operation_id = await self._db.write(add)
        operation = await self._queue.wait(operation_id, timeout=engine.start_deadline + model.START_GRACE)
        agent = await self._agents.get(agent.id)
        if operation.state is not OperationState.DONE:
            raise AgentStartFailed(agent)
        return agent

    def _select_engine(self, engine_id: str | None) -> Engine:
        offered = self._runtimes.list_engines()
        if not offered:
            raise EngineNotInstalled
        if engine_id is None:
            return offered[0]
        for engine in offered:
            if engine.id == engine_id:
                return engine
        raise UnknownEngine
