"""Restart: a new gateway, and for another engine version a new container."""

from dataclasses import dataclass

from sqlalchemy import Connection

from roost import work
from roost.agents.lifecycle.versions.model import INSTALL_SECONDS
from roost.agents.lifecycle.versions.service import VersionService
from roost.agents.lifecycle.workflows import model
from roost.agents.lifecycle.workflows.details import AgentDetails
from roost.agents.lifecycle.workflows.model import AgentRestartFailed
from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.model import Agent, AgentState
from roost.agents.workspace.snapshots.model import SnapshotTrigger
from roost.agents.workspace.snapshots.service import SnapshotService
from roost.work import OperationState, OperationWorker


@dataclass(frozen=True)
class RestartWorkflow:
    _queue: OperationWorker
    _runtimes: AgentRuntimes
    _details: AgentDetails
    _versions: VersionService
    _snapshots: SnapshotService

    async def __call__(self, agent_id: str, version: str | None = None) -> int | None:
        """Restart the agent; return the previous gateway's pid in the container when the new one answers.

        Requests share a restart that waits in the queue. A missing version is installed first, which takes minutes. If
        the version does not start, the agent is `failed` at that version.

        Raises AgentNotFound, AgentOnOtherHost, AgentRestartFailed, and the errors of `VersionService.require`.
        """
        agent = await self._runtimes.agents.get_here(agent_id)
        _, previous = await self._details.get_process(agent)
        engine = self._runtimes.get_engine(agent.engine)
        timeout = engine.start_deadline + model.START_GRACE
        if version is not None:
            await self._versions.require(engine, version)
            await self._snapshots.try_sync(agent_id, SnapshotTrigger.RESTART)
        missing = version not in {None, *engine.installed()}
        timeout += INSTALL_SECONDS if missing else 0.0

        def enqueue(connection: Connection) -> str:
            if not missing:  # otherwise the gateway keeps running during the install
                self._runtimes.agents.set_state(connection, agent_id, AgentState.STARTING)
            return _enqueue(connection, agent, version)

        operation_id = await self._queue.db.write(enqueue)
        operation = await self._queue.wait(operation_id, timeout, queue_timeout=model.QUEUE_SECONDS)
        await self._runtimes.agents.get(agent_id)  # raises if it was deleted meanwhile
        if operation.state is not OperationState.DONE:
            raise AgentRestartFailed
        if reason := operation.result.get("waits_for"):
            raise AgentRestartFailed(detail=reason)
        return previous


def _enqueue(connection: Connection, agent: Agent, version: str | None) -> str:
    # An unfinished operation may still change the version.
    unchanged = version == agent.engine_version and not work.is_subject_busy(connection, agent.id)
    payload = None if version is None or unchanged else {"version": version}
    for waiting in work.list_waiting_operations(connection, model.START, agent.id):
        if payload in (None, waiting.payload):
            return waiting.id
    return work.add_operation(connection, model.START, agent.id, payload, host=agent.host_id).id
