"""API shapes of tasks (contract: Tasks). `model.py` validates requests, so that all errors have one message."""

import re
from collections.abc import Sequence
from typing import Annotated, Any, cast

from pydantic import ConfigDict, Field, WithJsonSchema

from roost.agents.setup.tasks import model
from roost.drivers.engine.abilities.tasks import (
    AGENT_TURN,
    CronSchedule,
    IntervalSchedule,
    OneTimeSchedule,
    Schedule,
    Task,
    TaskPayload,
)
from roost.web.schemas import ApiSchema, Moment

_CAMEL_BOUNDARY = re.compile(r"(?<=[a-z])[A-Z]")
_TEXT = {"type": "string"}
_NAME = {"type": "string", "minLength": 1, "maxLength": model.NAME_LIMIT}
_SCHEDULE = {
    "type": "object",
    "required": ["kind"],
    "properties": {
        "kind": {"enum": ["at", "every", "cron"]},
        "at": {"type": "string", "format": "date-time"},
        "everyMs": {"type": "integer", "minimum": 60_000},
        "expr": {"type": "string", "description": "five fields"},
        "tz": {"type": "string", "description": "a zone such as Europe/Berlin; UTC by default"},
        "staggerMs": {"type": "integer", "minimum": 0},
    },
}
_PAYLOAD = {
    "type": "object",
    "properties": {
        "kind": {"enum": ["agentTurn", "systemEvent"]},
        **dict.fromkeys(("message", "text", "model", "thinking"), _TEXT),
        "timeoutSeconds": {"type": "integer", "minimum": 1, "maximum": model.TIMEOUT_LIMIT},
    },
}
_DELIVERY = {
    "type": "object",
    "properties": {
        "mode": {"enum": ["none", "announce", "webhook"]},
        **dict.fromkeys(("channel", "to"), _TEXT),
        "bestEffort": {"type": "boolean"},
    },
}


def _nullable(*schemas: dict[str, Any]) -> WithJsonSchema:
    return WithJsonSchema({"anyOf": [*schemas, {"type": "null"}]})


class _TaskFields(ApiSchema):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"name": "Report", "schedule": "0 8 * * 1-5", "payload": "Summarise the new issues"}]
        }
    )

    description: Annotated[Any, _nullable({"type": "string", "maxLength": model.DESCRIPTION_LIMIT})] = None
    enabled: Annotated[Any, _nullable({"type": "boolean"})] = None
    delivery: Annotated[Any, _nullable(_DELIVERY)] = None
    session_target: Annotated[Any, _nullable({"enum": ["main", "isolated"]})] = None
    wake_mode: Annotated[Any, _nullable({"enum": ["now", "next-heartbeat"]})] = None

    def to_fields(self) -> dict[str, Any]:
        """Return the request's fields with names in snake case."""
        return {name: _snake_case(value) for name, value in self.model_dump().items()}


class CreateTaskRequest(_TaskFields):
    """`schedule` as text: a cron expression with or without a zone, `@daily`, `every 10m`, or a time."""

    name: Annotated[Any, WithJsonSchema(_NAME)]
    schedule: Annotated[Any, WithJsonSchema({"anyOf": [_TEXT, _SCHEDULE]})]
    payload: Annotated[Any, WithJsonSchema({"anyOf": [_TEXT, _PAYLOAD]})]


class TaskRequest(_TaskFields):
    """Changes of a task; null leaves a field as it is."""

    name: Annotated[Any, _nullable(_NAME)] = None
    schedule: Annotated[Any, _nullable(_TEXT, _SCHEDULE)] = None
    payload: Annotated[Any, _nullable(_TEXT, _PAYLOAD)] = None


class ToggleTaskRequest(ApiSchema):
    enabled: Annotated[Any, _nullable({"type": "boolean"})] = None


class ScheduleRecord(ApiSchema):
    kind: str
    at: Moment | None = None
    every_ms: int | None = None
    expr: str | None = None
    tz: str | None = None
    stagger_ms: int | None = None


class PayloadRecord(ApiSchema):
    kind: str = Field(examples=["agentTurn"])
    message: str | None = Field(default=None, examples=["Summarise the new issues"])
    text: str | None = None
    model: str | None = None
    thinking: str | None = None
    timeout_seconds: int | None = None


class TaskDeliveryRecord(ApiSchema):
    mode: str
    channel: str | None = None
    to: str | None = None
    best_effort: bool = False


class TaskRecord(ApiSchema):
    """A task; `id` and `jobId` are equal. Tasks that the agent created may have a null schedule or payload."""

    id: str
    job_id: str
    name: str = Field(examples=["Report"])
    description: str | None
    enabled: bool
    running: bool
    schedule: ScheduleRecord | None
    payload: PayloadRecord | None
    delivery: TaskDeliveryRecord
    session_target: str
    wake_mode: str
    created_at: Moment | None
    next_run_at: Moment | None
    last_run_at: Moment | None
    last_status: str | None
    last_error: str | None


class TaskList(ApiSchema):
    """A list of tasks; `jobs` has the same tasks under the engines' name."""

    tasks: Sequence[TaskRecord]
    jobs: Sequence[TaskRecord]
    task_limit: int = model.TASK_LIMIT


class TaskDetail(ApiSchema):
    task: TaskRecord


class TaskChangeResponse(ApiSchema):
    success: bool = True
    job_id: str
    task: TaskRecord


class DeleteTaskResponse(ApiSchema):
    success: bool = True
    message: str = "Task deleted"


class RunTaskResponse(ApiSchema):
    """The run has started; its outcome appears in the list of runs."""

    success: bool = True
    job_id: str
    message: str = "Task started"


class TaskRunRecord(ApiSchema):
    id: str
    status: str = Field(description="running, ok, error, skipped or unknown", examples=["ok"])
    started_at: Moment | None
    duration_ms: int | None
    summary: str | None
    error: str | None


class TaskRunList(ApiSchema):
    """Runs, newest first; `entries` has the same runs."""

    runs: Sequence[TaskRunRecord]
    entries: Sequence[TaskRunRecord]


def _snake_case(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    fields = cast("dict[str, Any]", value)
    return {_CAMEL_BOUNDARY.sub(lambda letter: f"_{letter[0].lower()}", name): item for name, item in fields.items()}


def task_change_response(task: Task) -> TaskChangeResponse:
    return TaskChangeResponse(job_id=task.id, task=task_record(task))


def task_record(task: Task) -> TaskRecord:
    fields: dict[str, Any] = {
        "job_id": task.id,
        "schedule": None if task.schedule is None else schedule_record(task.schedule),
        "payload": None if task.payload is None else _payload(task.payload),
        "delivery": TaskDeliveryRecord(**vars(task.delivery)),
    }
    return TaskRecord(**{**vars(task), **fields})


def schedule_record(schedule: Schedule) -> ScheduleRecord:
    kinds = {OneTimeSchedule: "at", IntervalSchedule: "every", CronSchedule: "cron"}
    return ScheduleRecord(kind=kinds[type(schedule)], **vars(schedule))


def _payload(payload: TaskPayload) -> PayloadRecord:
    fields = dict(vars(payload))
    text = fields.pop("text")
    return PayloadRecord(**fields, **{"message" if payload.kind == AGENT_TURN else "text": text})
