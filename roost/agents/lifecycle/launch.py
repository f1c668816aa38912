"""Launch: a new agent's row, tokens and start in one transaction, answered when its gateway answers."""

from collections.abc import Mapping

from sqlalchemy import Connection

from roost import work
from roost.agents.lifecycle import model
from roost.agents.lifecycle.errors import (
    MissingBotToken,
    PlanTooSmall,
    StartFailed,
    TooManySkills,
    UnknownEngine,
    UnknownSkill,
    UnsupportedChannel,
)
from roost.agents.lifecycle.model import ChannelSettings, Order
from roost.agents.roster.model import Agent
from roost.agents.roster.reach import Reach
from roost.agents.roster.service import Roster
from roost.agents.secrets.service import Secrets
from roost.core.db import Database
from roost.drivers.engine.contract import Engine, EngineMissing
from roost.identity import tenants
from roost.identity.caller import Caller, Plan
from roost.identity.gateways import Gateways
from roost.work import State, Work


class Launch:
    def __init__(
        self, db: Database, queue: Work, roster: Roster, gateways: Gateways, reach: Reach, secrets: Secrets
    ) -> None:
        self._db = db
        self._queue = queue
        self._roster = roster
        self._gateways = gateways
        self._reach = reach
        self._secrets = secrets

    async def create(self, caller: Caller, order: Order) -> Agent:
        """The running agent.

        Raises Invalid and its kin for a bad order, AgentLimitReached, EngineMissing, UnknownSecret, ConflictingSecrets,
        and StartFailed with the agent in `agent` when the gateway did not come up.
        """
        engine = self._engine(order.engine)
        plan = (await self._db.read(lambda connection: tenants.get(connection, caller.tenant_id))).plan
        _check(order, plan)
        installed = engine.installed()
        version = engine.default_version if engine.default_version in installed else installed[0]

        def add(connection: Connection) -> tuple[Agent, str]:
            agent = self._roster.admit(connection, caller.tenant_id, order.profile, engine.id, version)
            self._gateways.mint(connection, agent.id, caller.tenant_id)
            self._secrets.give(connection, caller.tenant_id, agent.id, order.secret_ids)
            return agent, work.add(connection, model.START, agent.id).id

        agent, operation_id = await self._db.write(add)
        self._queue.wake()
        operation = await self._queue.wait(operation_id, timeout=engine.start_deadline + model.START_GRACE)
        agent = await self._roster.get(agent.id)
        if operation.state is not State.DONE:
            raise StartFailed(agent)
        return agent

    def _engine(self, engine_id: str | None) -> Engine:
        offered = self._reach.engines()
        if not offered:
            raise EngineMissing
        if engine_id is None:
            return offered[0]
        for engine in offered:
            if engine.id == engine_id:
                return engine
        raise UnknownEngine


def _check(order: Order, plan: Plan) -> None:
    if len(order.skill_cids) > model.SKILL_LIMIT:
        raise TooManySkills
    if order.skill_cids:
        raise UnknownSkill
    if order.channels:
        _check_channels(order.channels, plan)


def _check_channels(channels: Mapping[str, ChannelSettings], plan: Plan) -> None:
    """Nothing can be connected yet: after the contract's own checks every channel is one that is not supported."""
    for name, settings in channels.items():
        if name not in model.CHANNELS:
            raise UnsupportedChannel
        if not settings.bot_token:
            raise MissingBotToken
    if plan is Plan.FREE:
        raise PlanTooSmall
    raise UnsupportedChannel
