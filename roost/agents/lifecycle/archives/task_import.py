"""Create the tasks of an archive once the new agent's engine runs, because only that can store them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection

from roost import work
from roost.agents.library.templates.manifest import ManifestTask
from roost.agents.registry.errors import AgentNotFound
from roost.agents.registry.model import Agent, AgentState
from roost.agents.registry.repository import AgentRepository
from roost.agents.setup.tasks.model import InvalidTaskParameters, TaskLimitReached, TasksUnsupported
from roost.agents.setup.tasks.schemas import CreateTaskRequest
from roost.agents.setup.tasks.service import TaskService
from roost.core import clock
from roost.core.problem import Problem, ServiceUnavailable
from roost.work import ClaimedOperation, OperationNotFound, OperationWorker, Settlement

IMPORT_TASKS = "agent.import_tasks"
_SUBJECT = "/tasks"
_RETRIES = 100
_PAUSE = timedelta(seconds=1)
_LONG_PAUSE = timedelta(minutes=1)
_WAIT_SECONDS = 30.0
_REFUSALS = (InvalidTaskParameters, TaskLimitReached, TasksUnsupported)


class TaskImport:
    def __init__(self, queue: OperationWorker, agents: AgentRepository, tasks: TaskService) -> None:
        self._queue = queue
        self._agents = agents
        self._tasks = tasks
        queue.handle(IMPORT_TASKS, self.handle, retries=_RETRIES)

    @staticmethod
    def enqueue(
        connection: Connection, agent: Agent, tasks: Sequence[ManifestTask], operation_id: str | None = None
    ) -> None:
        """Enqueue the creation of tasks, if there are any, in the caller's transaction."""
        if tasks:
            # A subject of its own: the operations of the agent, one of which is its start, do not wait for this one.
            payload = [task.model_dump(mode="json", by_alias=True, exclude_none=True) for task in tasks]
            subject = f"{agent.id}{_SUBJECT}"
            work.add_operation(
                connection, IMPORT_TASKS, subject, payload, host=agent.host_id, operation_id=operation_id
            )

    async def wait(self, operation_id: str) -> Sequence[str]:
        """Wait a while for the tasks, and return the names of those that the engine refuses."""
        try:
            operation = await self._queue.wait(operation_id, _WAIT_SECONDS)
        except OperationNotFound:  # there were no tasks
            return ()
        result: Mapping[str, Sequence[str]] = operation.result or {}
        return result.get("refused", ())

    async def handle(self, operation: ClaimedOperation) -> Mapping[str, Any] | Settlement:
        """Handle `agent.import_tasks`, idempotently: wait until the agent runs, and create the tasks that it lacks."""
        agent_id = operation.subject.removesuffix(_SUBJECT)
        try:
            agent = await self._agents.get_here(agent_id)
            if agent.state is AgentState.RUNNING:
                return {"refused": await self._create_missing(agent_id, operation.payload)}
        except AgentNotFound:
            return {}
        run_after = clock.utc_now() + (_PAUSE if agent.state is AgentState.STARTING else _LONG_PAUSE)
        return Settlement(lambda connection: work.postpone_operation(connection, operation, run_after))

    async def _create_missing(self, agent_id: str, tasks: Sequence[dict[str, Any]]) -> Sequence[str]:
        """Create the tasks whose names the agent does not have, and return the names of those that are refused.

        Raises ServiceUnavailable, for another attempt, if the engine does not answer.
        """
        refused: list[str] = []
        try:
            present = Counter(task.name for task in await self._tasks.list(agent_id))
            for task in tasks:
                if present[task["name"]]:
                    present[task["name"]] -= 1
                    continue
                try:
                    await self._tasks.create(agent_id, CreateTaskRequest.model_validate(task).to_fields())
                except _REFUSALS:
                    refused.append(task["name"])
        except AgentNotFound:
            raise
        except Problem as problem:
            raise ServiceUnavailable(problem.message) from problem
        return refused
