"""Launch: a new agent's row, tokens and start in one transaction, answered when its gateway answers."""

from sqlalchemy import Connection

from roost import work
from roost.agents.channels.book import Book
from roost.agents.channels.intake import Intake
from roost.agents.lifecycle import model
from roost.agents.lifecycle.errors import (
    StartFailed,
    TooManySkills,
    UnknownEngine,
    UnknownSkill,
)
from roost.agents.lifecycle.model import Order
from roost.agents.roster.model import Agent
from roost.agents.roster.reach import Reach
from roost.agents.roster.service import Roster
from roost.agents.secrets.service import Secrets
from roost.core.db import Database
from roost.drivers.engine.contract import Engine, EngineMissing
from roost.identity import tenants
from roost.identity.caller import Caller
from roost.identity.gateways import Gateways
from roost.work import State, Work


class Launch:
    def __init__(
        self,
        db: Database,
        queue: Work,
        roster: Roster,
        gateways: Gateways,
        reach: Reach,
        secrets: Secrets,
        intake: Intake,
        book: Book,
    ) -> None:
        self._db = db
        self._queue = queue
        self._roster = roster
        self._gateways = gateways
        self._reach = reach
        self._secrets = secrets
        self._intake = intake
        self._book = book

    async def create(self, caller: Caller, order: Order) -> Agent:
        """The running agent.

        Raises Invalid and its kin for a bad order, AgentLimitReached, EngineMissing, UnknownSecret, ConflictingSecrets,
        TokenRejected, TokenInUse, and StartFailed with the agent in `agent` when the gateway did not come up.
        """
        engine = self._engine(order.engine)
        plan = (await self._db.read(lambda connection: tenants.get(connection, caller.tenant_id))).plan
        _check(order)
        installed = engine.installed()
        version = engine.default_version if engine.default_version in installed else installed[0]
        channels = await self._intake.take_all(order.channels, plan, engine, version)

        def add(connection: Connection) -> tuple[Agent, str]:
            agent = self._roster.admit(connection, caller.tenant_id, order.profile, engine.id, version)
            self._gateways.mint(connection, agent.id, caller.tenant_id)
            self._secrets.give(connection, caller.tenant_id, agent.id, order.secret_ids)
            self._book.add(connection, agent.id, channels)
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


def _check(order: Order) -> None:
    if len(order.skill_cids) > model.SKILL_LIMIT:
        raise TooManySkills
    if order.skill_cids:
        raise UnknownSkill
