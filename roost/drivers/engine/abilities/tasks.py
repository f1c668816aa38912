"""Scheduled tasks, which an engine stores and runs even while no Roost server is running.

A task runs once within seconds of its `next_run_at`; two runs of one task never overlap. Tasks include those that the
agent scheduled itself, but not the engine's own maintenance. Drivers check the types and limit the sizes of the
untrusted values that an engine returns.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from roost.core.problem import InvalidInput, NotFound, ResourceConflict
from roost.drivers.engine.abilities.agent_context import AgentContext

PayloadKind = Literal["agentTurn", "systemEvent"]
AGENT_TURN: PayloadKind = "agentTurn"
SYSTEM_EVENT: PayloadKind = "systemEvent"
DeliveryMode = Literal["none", "announce", "webhook"]
SessionTarget = Literal["main", "isolated"]
WakeMode = Literal["now", "next-heartbeat"]


class EngineTaskNotFound(NotFound):
    message = "Task not found"


class EngineTaskRefused(InvalidInput):
    """The engine lacks a requested option, or its rules are stricter than ours."""

    message = "The engine rejects this task"


class EngineTaskRunning(ResourceConflict):
    message = "The task is running"


@dataclass(frozen=True)
class OneTimeSchedule:
    at: datetime


@dataclass(frozen=True)
class IntervalSchedule:
    """Repeating schedule that is first due one interval after the task was created."""

    every_ms: int


@dataclass(frozen=True)
class CronSchedule:
    """Cron expression of five fields in the local time of a zone; stagger_ms: maximum deliberate delay."""

    expr: str
    tz: str = "UTC"
    stagger_ms: int = 0


Schedule = OneTimeSchedule | IntervalSchedule | CronSchedule


@dataclass(frozen=True)
class TaskPayload:
    """Text that the agent receives; only an agent turn has the options below it."""

    kind: PayloadKind
    text: str
    model: str | None = None
    thinking: str | None = None
    timeout_seconds: int | None = None


@dataclass(frozen=True)
class TaskDelivery:
    """Where the outcome is sent besides the history: nowhere, to a chat channel, or to a webhook."""

    mode: DeliveryMode = "none"
    channel: str | None = None
    to: str | None = None
    best_effort: bool = False


@dataclass(frozen=True)
class TaskSpec:
    name: str
    schedule: Schedule
    payload: TaskPayload
    description: str | None = None
    enabled: bool = True
    delivery: TaskDelivery = TaskDelivery()
    session_target: SessionTarget = "isolated"
    wake_mode: WakeMode = "now"


@dataclass(frozen=True)
class TaskChange:
    """Changes to a task; None keeps the present value."""

    name: str | None = None
    schedule: Schedule | None = None
    payload: TaskPayload | None = None
    description: str | None = None
    enabled: bool | None = None
    delivery: TaskDelivery | None = None
    session_target: SessionTarget | None = None
    wake_mode: WakeMode | None = None


@dataclass(frozen=True)
class Task:
    """A task as the engine stores it.

    schedule, payload: None if the agent created a kind that these types cannot express.
    next_run_at: None for a disabled task and for a one-time task that has run.
    last_status: `ok`, `error` or another value of the engine.
    """

    id: str
    name: str
    description: str | None
    enabled: bool
    schedule: Schedule | None
    payload: TaskPayload | None
    delivery: TaskDelivery
    session_target: SessionTarget
    wake_mode: WakeMode
    created_at: datetime | None
    next_run_at: datetime | None
    last_run_at: datetime | None
    last_status: str | None
    last_error: str | None
    running: bool


@dataclass(frozen=True)
class TaskRun:
    """A started run of a task.

    status: `running`, `ok`, `error`, `skipped`, or `unknown` if the engine was killed during the run.
    summary: the beginning of the agent's answer.
    """

    id: str
    status: str
    started_at: datetime | None
    duration_ms: int | None
    summary: str | None
    error: str | None


class TaskAbility(ABC):
    """Ability to store and run tasks.

    Methods also raise EngineFailed, and the errors of dialling (DialRefused, ContainerNotRunning).
    """

    @abstractmethod
    async def list(self, agent: AgentContext) -> Sequence[Task]:
        """Return at most 200 tasks, including disabled ones, oldest first."""

    @abstractmethod
    async def get(self, agent: AgentContext, task_id: str) -> Task:
        """Return one task. Raises EngineTaskNotFound."""

    @abstractmethod
    async def create(self, agent: AgentContext, spec: TaskSpec) -> Task:
        """Create a task and return it when it is durable. Raises EngineTaskRefused."""

    @abstractmethod
    async def update(self, agent: AgentContext, task_id: str, change: TaskChange) -> Task:
        """Change a task. Raises EngineTaskNotFound; EngineTaskRefused also to enable a task whose time has passed."""

    @abstractmethod
    async def delete(self, agent: AgentContext, task_id: str) -> None:
        """Delete a task; its history may remain and a started run may finish. Raises EngineTaskNotFound."""

    @abstractmethod
    async def run(self, agent: AgentContext, task_id: str) -> None:
        """Start a run now, independent of the schedule and also for a disabled task.

        Raises EngineTaskNotFound, and EngineTaskRunning if the engine reports it.
        """

    @abstractmethod
    async def runs(self, agent: AgentContext, task_id: str, limit: int) -> Sequence[TaskRun]:
        """Return the latest runs, newest first, at most `limit` (up to 200)."""
