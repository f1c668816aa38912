"""Restart: the gateway anew in its box, or, for another engine version, the box as well."""

from sqlalchemy import Connection

from roost import work
from roost.agents.lifecycle import model
from roost.agents.lifecycle.detail import Details
from roost.agents.lifecycle.errors import InvalidVersion, RestartFailed
from roost.agents.roster.model import AgentState
from roost.agents.roster.reach import Reach
from roost.agents.roster.service import Roster
from roost.core.db import Database
from roost.work import State, Work


class Restart:
    def __init__(self, db: Database, queue: Work, roster: Roster, reach: Reach, details: Details) -> None:
        self._db = db
        self._details = details
        self._queue = queue
        self._roster = roster
        self._reach = reach

    async def __call__(self, agent_id: str, version: str | None = None) -> int | None:
        """Returns when the gateway answers again, with the pid (in its box) that the last one had.

        Whoever asks while a restart waits for its turn gets that one: they do not queue up.

        Raises AgentGone, InvalidVersion, RestartFailed.
        """
        agent = await self._roster.get(agent_id)
        _, previous = await self._details.process(agent)
        engine = self._reach.engine(agent.engine)
        if version is not None and version not in engine.installed():
            raise InvalidVersion
        changed = version is not None and version != agent.engine_version

        def enqueue(connection: Connection) -> str:
            if changed and version is not None:
                self._roster.set_version(connection, agent_id, version)
            self._roster.move(connection, agent_id, AgentState.STARTING)
            payload = model.NEW_BOX if changed else None
            for other in work.waiting(connection, model.START, agent_id):
                if other.payload in (payload, model.NEW_BOX):
                    return other.id
            return work.add(connection, model.START, agent_id, payload).id

        operation_id = await self._db.write(enqueue)
        self._queue.wake()
        operation = await self._queue.wait(operation_id, timeout=engine.start_deadline + model.START_GRACE)
        await self._roster.get(agent_id)  # it may have been deleted meanwhile
        if operation.state is not State.DONE:
            raise RestartFailed
        return previous
