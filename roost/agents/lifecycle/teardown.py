"""Teardown: an agent is hidden and its token dead at once; box and files follow, whatever crashes in between."""

import contextlib
from typing import Any

from sqlalchemy import Connection

from roost import work
from roost.agents.channels.book import Book
from roost.agents.lifecycle import model
from roost.agents.lifecycle.errors import DeleteFailed
from roost.agents.lifecycle.model import Relays
from roost.agents.roster.service import Roster
from roost.agents.secrets.service import Secrets
from roost.core.db import Database
from roost.core.problem import Problem, Unavailable
from roost.drivers.runtime.contract import Runtime
from roost.identity.gateways import Gateways
from roost.work import Claim, State, Work

_DEADLINE = 60.0


class Teardown:
    def __init__(
        self, db: Database, queue: Work, roster: Roster, gateways: Gateways, runtime: Runtime, relays: Relays
    ) -> None:
        self._db = db
        self._queue = queue
        self._roster = roster
        self._gateways = gateways
        self._runtime = runtime
        self._relays = relays

    async def delete(self, agent_id: str) -> None:
        """Returns when nothing is left of the agent. Raises AgentGone, DeleteFailed."""

        def dismiss(connection: Connection) -> str:
            self._roster.dismiss(connection, agent_id)
            self._gateways.forget(connection, agent_id)
            Book.release(connection, agent_id)
            Secrets.release(connection, agent_id)
            return work.add(connection, model.DELETE, agent_id).id

        operation_id = await self._db.write(dismiss)
        self._gateways.changed(agent_id)
        self._queue.wake()
        with contextlib.suppress(Problem):  # what does not end is the operation's to deal with, and to tell of
            await self._runtime.stop(agent_id, grace=0)  # a start under way gives up at once
        operation = await self._queue.wait(operation_id, timeout=_DEADLINE)
        if operation.state is not State.DONE:
            raise DeleteFailed

    async def handle(self, operation: Claim) -> dict[str, Any]:
        """`agent.delete`, idempotent. What does not work now is tried again later."""
        await self._relays.close(operation.subject)
        try:
            await self._runtime.delete(operation.subject)
        except Problem as problem:
            raise Unavailable(problem.message) from problem
        await operation.guard(lambda connection: self._roster.erase(connection, operation.subject))
        return {}
