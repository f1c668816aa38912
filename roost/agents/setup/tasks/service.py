"""Tasks of an agent, stored and run by its engine: common rules and errors of all engines.

Changes of one agent's tasks are serialized, so that the limit is exact and each task has at most one run.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from weakref import WeakValueDictionary

from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.setup.tasks import model
from roost.agents.setup.tasks.model import (
    InvalidTaskParameters,
    TaskAlreadyRunning,
    TaskCreateFailed,
    TaskLimitReached,
    TaskListFailed,
    TaskNotFound,
    TasksUnsupported,
)
from roost.core import log
from roost.core.db import Database, DataChange, write_change
from roost.core.problem import Problem
from roost.drivers.engine.abilities import tasks as ability
from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.abilities.tasks import Task, TaskChange, TaskRun
from roost.drivers.engine.contract import EngineFailed
from roost.warden_client.errors import ContainerNotRunning, DialRefused, ExecRefused, WardenBusy, WardenFailed

_log = log.get_logger("tasks")
_TIMEOUT_SECONDS = 30.0
_FAILURES = (EngineFailed, ContainerNotRunning, DialRefused, ExecRefused, WardenBusy, WardenFailed, TimeoutError)


_TaskEngine = tuple[ability.TaskAbility, AgentContext]
"""The task ability of an agent's engine, and the agent for its methods."""


class TaskService:
    def __init__(self, db: Database, runtimes: AgentRuntimes) -> None:
        self._db = db
        self._runtimes = runtimes
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def list(self, agent_id: str, *, with_disabled: bool = True) -> Sequence[Task]:
        """List tasks, oldest first. Raises AgentNotFound, TaskListFailed."""
        async with self._engine(agent_id, TaskListFailed) as (engine, agent):
            return [task for task in await engine.list(agent) if task.enabled or with_disabled]

    async def create(self, agent_id: str, fields: model.Fields) -> Task:
        """Create a task. Raises InvalidTaskParameters, TaskLimitReached, AgentNotFound, TaskCreateFailed."""
        spec = model.parse_new_task(fields)
        async with self._exclusive_engine(agent_id, TaskCreateFailed) as (engine, agent):
            if len(await engine.list(agent)) >= model.TASK_LIMIT:
                raise TaskLimitReached
            task = await engine.create(agent, spec)
            await self._record(agent_id, task.id, "changed", action="created", name=task.name)
            return task

    async def get(self, agent_id: str, task_id: str) -> Task:
        """Return one task. Raises TaskNotFound, AgentNotFound, EngineFailed."""
        async with self._engine(agent_id, EngineFailed) as (engine, agent):
            return await engine.get(agent, model.validate_task_id(task_id))

    async def update(self, agent_id: str, task_id: str, fields: model.Fields) -> Task:
        """Change the given fields. Raises InvalidTaskParameters, TaskNotFound, AgentNotFound, EngineFailed."""
        change = model.parse_task_change(fields)
        async with self._exclusive_engine(agent_id, EngineFailed) as (engine, agent):
            return await self._update(agent_id, (engine, agent), model.validate_task_id(task_id), change)

    async def toggle(self, agent_id: str, task_id: str, enabled: object = None) -> Task:
        """Enable or disable a task; None toggles it. Raises the errors of `update`."""
        target = model.parse_boolean(enabled)
        async with self._exclusive_engine(agent_id, EngineFailed) as (engine, agent):
            now = await engine.get(agent, model.validate_task_id(task_id))
            if target is now.enabled:
                return now
            return await self._update(agent_id, (engine, agent), task_id, TaskChange(enabled=not now.enabled))

    async def delete(self, agent_id: str, task_id: str) -> None:
        """Delete a task. Raises TaskNotFound, AgentNotFound, EngineFailed."""
        async with self._exclusive_engine(agent_id, EngineFailed) as (engine, agent):
            await engine.delete(agent, model.validate_task_id(task_id))
            await self._record(agent_id, task_id, "changed", action="deleted")

    async def run(self, agent_id: str, task_id: str) -> None:
        """Start a run now. Raises TaskAlreadyRunning, TaskNotFound, AgentNotFound, EngineFailed."""
        async with self._exclusive_engine(agent_id, EngineFailed) as (engine, agent):
            if (await engine.get(agent, model.validate_task_id(task_id))).running:
                raise TaskAlreadyRunning
            await engine.run(agent, task_id)
            self._runtimes.record_use(agent_id)
            await self._record(agent_id, task_id, "run", state="started")

    async def list_runs(self, agent_id: str, task_id: str, limit: int) -> Sequence[TaskRun]:
        """List runs, newest first. Raises TaskNotFound, AgentNotFound, EngineFailed."""
        async with self._engine(agent_id, EngineFailed) as (engine, agent):
            return await engine.runs(agent, model.validate_task_id(task_id), limit)

    async def _update(self, agent_id: str, engine: _TaskEngine, task_id: str, change: TaskChange) -> Task:
        tasks, agent = engine
        task = await tasks.update(agent, task_id, change)
        await self._record(agent_id, task.id, "changed", action="updated", name=task.name, enabled=task.enabled)
        return task

    async def _record(self, agent_id: str, task_id: str, verb: str, **data: Any) -> None:
        await write_change(self._db, DataChange("task", verb, task_id, agent_id=agent_id, data=data))

    @asynccontextmanager
    async def _exclusive_engine(self, agent_id: str, failure: type[Problem]) -> AsyncGenerator[_TaskEngine]:
        lock = self._locks.setdefault(agent_id, asyncio.Lock())
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                await lock.acquire()
        except TimeoutError:
            raise failure from None
        try:
            async with self._engine(agent_id, failure) as engine:
                yield engine
        finally:
            lock.release()

    @asynccontextmanager
    async def _engine(self, agent_id: str, failure: type[Problem]) -> AsyncGenerator[_TaskEngine]:
        """Return the engine for one request, with a time limit; raise `failure` if it fails."""
        engine, context = await self._runtimes.get_context(agent_id)
        if engine.tasks is None:
            raise TasksUnsupported
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                yield engine.tasks, context
        except ability.EngineTaskNotFound:
            raise TaskNotFound from None
        except ability.EngineTaskRefused as refused:
            _log.info("task.refused", agent=agent_id, engine=engine.id, reason=refused.message)
            raise InvalidTaskParameters(detail=f"the engine refuses it: {refused.message}") from None
        except ability.EngineTaskRunning:
            raise TaskAlreadyRunning from None
        except _FAILURES as error:
            _log.warning("task.request_failed", agent=agent_id, engine=engine.id, error=str(error))
            raise failure from None
