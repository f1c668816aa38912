"""Restart: the gateway anew in its container, or, for another engine version, the container as well."""

from sqlalchemy import Connection

from roost import work
from roost.agents.lifecycle import model
from roost.agents.lifecycle.details import AgentDetails
from roost.agents.lifecycle.errors import AgentRestartFailed
from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.model import Agent, AgentState
from roost.agents.registry.repository import AgentRepository
from roost.agents.versions.model import INSTALL_SECONDS
from roost.agents.versions.service import VersionService
from roost.core.db import Database
from roost.work import OperationState, OperationWorker


class RestartWorkflow:
    def __init__(
        self,
        db: Database,
        queue: OperationWorker,
        roster: AgentRepository,
        reach: AgentRuntimes,
        details: AgentDetails,
        versions: VersionService,
    ) -> None:
        self._db = db
        self._details = details
        self._queue = queue
        self._roster = roster
        self._reach = reach
        self._versions = versions

    async def __call__(self, agent_id: str, version: str | None = None) -> int | None:
        """Returns when the gateway answers again, with the pid (in its container) that the last one had.

        Whoever asks while a restart waits for its turn gets that one: they do not queue up.

        A version that is missing here is installed first, which takes minutes. One that does not start leaves the agent
        failed, at that version.

        Raises AgentNotFound, InvalidVersionName and its kin, RestartFailed.
        """
        agent = await self._roster.get(agent_id)
        _, previous = await self._details.process(agent)
        engine = self._reach.get_engine(agent.engine)
        patience = engine.start_deadline + model.START_GRACE
        if version is not None:
            await self._versions.require(engine, version)
        missing = version not in {None, *engine.installed()}
        patience += INSTALL_SECONDS if missing else 0.0

        def enqueue(connection: Connection) -> str:
            if not missing:  # else the gateway goes on until there is something to restart at
                self._roster.set_state(connection, agent_id, AgentState.STARTING)
            return _enqueue(connection, agent, version)

        operation_id = await self._db.write(enqueue)
        self._queue.wake()
        operation = await self._queue.wait(operation_id, timeout=patience)
        await self._roster.get(agent_id)  # it may have been deleted meanwhile
        if operation.state is not OperationState.DONE:
            raise AgentRestartFailed
        return previous


def _enqueue(connection: Connection, agent: Agent, version: str | None) -> str:
    here = version == agent.engine_version and not work.is_subject_busy(
        connection, agent.id
    )  # what is under way may leave it
    payload = None if version is None or here else model.at_version(version)
    for other in work.list_waiting_operations(connection, model.START, agent.id):
        if payload in (None, other.payload):
            return other.id
    return work.add_operation(connection, model.START, agent.id, payload).id
