"""Tasks of an agent, kept and run by its engine: the rules that all engines share, and their failures in our words.

What is done to the tasks of one agent is done one at a time, so that the limit is exact and one task has one run.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from weakref import WeakValueDictionary

from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.tasks import model
from roost.agents.tasks.errors import (
    InvalidTaskParameters,
    TaskAlreadyRunning,
    TaskCreateFailed,
    TaskLimitReached,
    TaskListFailed,
    TaskNotFound,
    TasksUnsupported,
)
from roost.core import log
from roost.core.problem import Problem
from roost.drivers.engine.abilities import tasks as ability
from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.abilities.tasks import Task, TaskChange, TaskRun
from roost.drivers.engine.contract import EngineFailed
from roost.drivers.runtime.contract import ContainerNotRunning
from roost.drivers.runtime.warden_client import DialRefused, ExecRefused, WardenBusy, WardenFailed

_log = log.get_logger("tasks")
_SECONDS = 30.0
_NOT_DONE = (EngineFailed, ContainerNotRunning, DialRefused, ExecRefused, WardenBusy, WardenFailed, TimeoutError)


@dataclass(frozen=True)
class _TaskEngine:
    """The ability of one agent's engine, with the way to it."""

    tasks: ability.TaskAbility
    inside: AgentContext

    async def all(self) -> Sequence[Task]:
        return await self.tasks.list(self.inside)

    async def get(self, task_id: str) -> Task:
        return await self.tasks.get(self.inside, task_id)

    async def update(self, task_id: str, change: TaskChange) -> Task:
        return await self.tasks.update(self.inside, task_id, change)


class TaskService:
    def __init__(self, reach: AgentRuntimes) -> None:
        self._reach = reach
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def list(self, agent_id: str, *, with_disabled: bool = True) -> Sequence[Task]:
        """Oldest first. Raises AgentGone, ListFailed."""
        async with self._engine(agent_id, TaskListFailed) as engine:
            return [task for task in await engine.all() if task.enabled or with_disabled]

    async def create(self, agent_id: str, fields: model.Fields) -> Task:
        """Raises InvalidParameters, TaskLimitReached, AgentGone, CreateFailed."""
        spec = model.spec(fields)
        async with self._alone(agent_id, TaskCreateFailed) as engine:
            if len(await engine.all()) >= model.TASK_LIMIT:
                raise TaskLimitReached
            return await engine.tasks.create(engine.inside, spec)

    async def get(self, agent_id: str, task_id: str) -> Task:
        """Raises UnknownTask, AgentGone, EngineFailed."""
        async with self._engine(agent_id, EngineFailed) as engine:
            return await engine.get(model.checked_id(task_id))

    async def update(self, agent_id: str, task_id: str, fields: model.Fields) -> Task:
        """Change what is given. Raises InvalidParameters, UnknownTask, AgentGone, EngineFailed."""
        change = model.change(fields)
        async with self._alone(agent_id, EngineFailed) as engine:
            return await engine.update(model.checked_id(task_id), change)

    async def toggle(self, agent_id: str, task_id: str, wanted: object = None) -> Task:
        """Turn it on or off; to the other side when that is not said. Raises as `update` does."""
        enabled = model.switch(wanted)
        async with self._alone(agent_id, EngineFailed) as engine:
            now = await engine.get(model.checked_id(task_id))
            if enabled is now.enabled:
                return now
            return await engine.update(task_id, TaskChange(enabled=not now.enabled))

    async def delete(self, agent_id: str, task_id: str) -> None:
        """Raises UnknownTask, AgentGone, EngineFailed."""
        async with self._alone(agent_id, EngineFailed) as engine:
            await engine.tasks.delete(engine.inside, model.checked_id(task_id))

    async def run(self, agent_id: str, task_id: str) -> None:
        """Have it run now; returns when that is under way.

        Raises TaskIsRunning, UnknownTask, AgentGone, EngineFailed.
        """
        async with self._alone(agent_id, EngineFailed) as engine:
            if (await engine.get(model.checked_id(task_id))).running:
                raise TaskAlreadyRunning
            await engine.tasks.run(engine.inside, task_id)

    async def runs(self, agent_id: str, task_id: str, limit: int) -> Sequence[TaskRun]:
        """Newest first. Raises UnknownTask, AgentGone, EngineFailed."""
        async with self._engine(agent_id, EngineFailed) as engine:
            return await engine.tasks.runs(engine.inside, model.checked_id(task_id), limit)

    @asynccontextmanager
    async def _alone(self, agent_id: str, failure: type[Problem]) -> AsyncGenerator[_TaskEngine]:
        """The engine, when nobody else is at the agent's tasks."""
        turn = self._turns.setdefault(agent_id, asyncio.Lock())
        try:
            async with asyncio.timeout(_SECONDS):
                await turn.acquire()
        except TimeoutError:
            raise failure from None
        try:
            async with self._engine(agent_id, failure) as engine:
                yield engine
        finally:
            turn.release()

    @asynccontextmanager
    async def _engine(self, agent_id: str, failure: type[Problem]) -> AsyncGenerator[_TaskEngine]:
        """The engine for one thing that is asked of it; what it does not do in time has failed."""
        engine, inside = await self._reach.inside(agent_id)
        if engine.tasks is None:
            raise TasksUnsupported
        try:
            async with asyncio.timeout(_SECONDS):
                yield _TaskEngine(engine.tasks, inside)
        except ability.EngineTaskNotFound:
            raise TaskNotFound from None
        except ability.EngineTaskRefused as refused:
            _log.info("task refused", agent=agent_id, engine=engine.id, reason=refused.message)
            raise InvalidTaskParameters from None
        except ability.EngineTaskRunning:
            raise TaskAlreadyRunning from None
        except _NOT_DONE as error:
            _log.warning("the engine did not do it", agent=agent_id, engine=engine.id, error=str(error))
            raise failure from None
