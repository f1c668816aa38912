"""Launch: a new agent's row, tokens and start in one transaction, answered when its gateway answers."""

from sqlalchemy import Connection

from roost import work
from roost.agents.channels.repository import ChannelRepository
from roost.agents.channels.validator import ChannelValidator
from roost.agents.lifecycle import model
from roost.agents.lifecycle.errors import (
    AgentStartFailed,
    UnknownEngine,
)
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
        roster: AgentRepository,
        gateways: GatewayTokens,
        reach: AgentRuntimes,
        secrets: SecretService,
        intake: ChannelValidator,
        book: ChannelRepository,
    ) -> None:
        self._db = db
        self._queue = queue
        self._roster = roster
        self._gateways = gateways
        self._reach = reach
        self._secrets = secrets
        self._intake = intake
        self._book = book

    async def create(self, caller: Caller, order: CreateAgent) -> Agent:
        """The running agent.

        Raises InvalidInput and its subclasses, AgentLimitReached, EngineNotInstalled, UnknownSecret,
        ConflictingSecrets, TokenRejected, TokenInUse, and AgentStartFailed with the agent in `agent` when the gateway
        did not start.
        """
        engine = self._engine(order.engine)
        plan = (await self._db.read(lambda connection: tenants.get_tenant(connection, caller.tenant_id))).plan
        installed = engine.installed()
        version = engine.default_version if engine.default_version in installed else installed[0]
        channels = await self._intake.validate_all(order.channels, plan, engine, version)

        def add(connection: Connection) -> tuple[Agent, str]:
            agent = self._roster.create(connection, caller.tenant_id, order.profile, engine.id, version)
            self._gateways.mint(connection, agent.id, caller.tenant_id)
            self._secrets.attach_in_transaction(connection, caller.tenant_id, agent.id, order.secret_ids)
            self._book.save_in_transaction(connection, agent.id, channels)
            return agent, work.add_operation(connection, model.START, agent.id).id

        agent, operation_id = await self._db.write(add)
        self._queue.wake()
        operation = await self._queue.wait(operation_id, timeout=engine.start_deadline + model.START_GRACE)
        agent = await self._roster.get(agent.id)
        if operation.state is not OperationState.DONE:
            raise AgentStartFailed(agent)
        return agent

    def _engine(self, engine_id: str | None) -> Engine:
        offered = self._reach.list_engines()
        if not offered:
            raise EngineNotInstalled
        if engine_id is None:
            return offered[0]
        for engine in offered:
            if engine.id == engine_id:
                return engine
        raise UnknownEngine
