"""Scheduled tasks: an engine keeps them and runs them at their time, whether a server of ours is there or not.

A task is due at `next_run_at` and runs once for it, within seconds; two runs of one task never overlap. What the agent
scheduled itself is a task like any other; the engine's own housekeeping is none. What comes back from an engine is
hostile: bounded, of the right types, and no more than data.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from roost.core.problem import Problem, ProblemKind
from roost.drivers.engine.abilities.agent_context import AgentContext

PayloadKind = Literal["agentTurn", "systemEvent"]
AGENT_TURN: PayloadKind = "agentTurn"
SYSTEM_EVENT: PayloadKind = "systemEvent"
DeliveryMode = Literal["none", "announce", "webhook"]
SessionTarget = Literal["main", "isolated"]
WakeMode = Literal["now", "next-heartbeat"]


class EngineTaskNotFound(Problem):
    kind = ProblemKind.MISSING
    message = "Task not found"


class EngineTaskRefused(Problem):
    """The engine does not take this: it lacks what is asked for, or has stricter rules than ours."""

    kind = ProblemKind.INVALID
    message = "The engine does not take this task"


class EngineTaskRunning(Problem):
    kind = ProblemKind.CONFLICT
    message = "The task is running"


@dataclass(frozen=True)
class OneTimeSchedule:
    """Once."""

    at: datetime


@dataclass(frozen=True)
class IntervalSchedule:
    """First one interval after the task was made."""

    every_ms: int


@dataclass(frozen=True)
class CronSchedule:
    """Five fields, in the wall time of a zone; `stagger_ms` is by how much the engine may be late on purpose."""

    expr: str
    tz: str = "UTC"
    stagger_ms: int = 0


Schedule = OneTimeSchedule | IntervalSchedule | CronSchedule


@dataclass(frozen=True)
class TaskPayload:
    """What the agent is told. The options are an agent's turn's only; the time-out is in seconds."""

    kind: PayloadKind
    text: str
    model: str | None = None
    thinking: str | None = None
    timeout_seconds: int | None = None


@dataclass(frozen=True)
class TaskDelivery:
    """Where the outcome goes, beside the history: nowhere, to a chat, or to an address."""

    mode: DeliveryMode = "none"
    channel: str | None = None
    to: str | None = None
    best_effort: bool = False


@dataclass(frozen=True)
class TaskSpec:
    """A task as it is asked for."""

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
    """What is to be different; None leaves it as it is."""

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
    """A task as the engine has it. `schedule` and `payload` are None where the agent made something that ours cannot
    express. A task that is off, or that had its one time, has no next run. `last_status` is `ok`, `error` or a word of
    the engine's own.
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
    """One run that began. `status` is `running`, `ok`, `error`, `skipped`, or `unknown` where the engine was killed in
    the middle of it; `summary` is the beginning of what the agent said.
    """

    id: str
    status: str
    started_at: datetime | None
    duration_ms: int | None
    summary: str | None
    error: str | None


class TaskAbility(ABC):
    """Every method may also raise EngineFailed, and what dialling raises (DialRefused, ContainerNotRunning)."""

    @abstractmethod
    async def list(self, inside: AgentContext) -> Sequence[Task]:
        """All of them, also those that are off, oldest first; at most 200."""

    @abstractmethod
    async def get(self, inside: AgentContext, task_id: str) -> Task:
        """Raises NoSuchTask."""

    @abstractmethod
    async def create(self, inside: AgentContext, spec: TaskSpec) -> Task:
        """Durable when it returns. Raises TaskRefused."""

    @abstractmethod
    async def update(self, inside: AgentContext, task_id: str, change: TaskChange) -> Task:
        """Raises NoSuchTask, TaskRefused (also for enabling what has no time left)."""

    @abstractmethod
    async def delete(self, inside: AgentContext, task_id: str) -> None:
        """With its history or without; a run that has begun may end. Raises NoSuchTask."""

    @abstractmethod
    async def run(self, inside: AgentContext, task_id: str) -> None:
        """Have it run now, beside its schedule and also when it is off; returns when that is under way.

        Raises NoSuchTask, and TaskRunning where the engine tells.
        """

    @abstractmethod
    async def runs(self, inside: AgentContext, task_id: str, limit: int) -> Sequence[TaskRun]:
        """The latest runs, newest first, at most `limit` (up to 200)."""
