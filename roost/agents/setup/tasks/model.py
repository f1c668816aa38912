"""Limits of tasks, and parsing of the fields that a client sends. Malformed fields raise InvalidTaskParameters.

Names of fields are in snake case; values are as the client sent them.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from pydantic.alias_generators import to_camel

from roost.agents.setup.tasks import schedules
from roost.core.partial_update import given_fields
from roost.core.problem import InvalidInput, NotFound, Problem, ResourceConflict
from roost.core.sanitize import is_storable
from roost.drivers.engine.abilities.tasks import (
    AGENT_TURN,
    SYSTEM_EVENT,
    Schedule,
    SessionTarget,
    TaskChange,
    TaskDelivery,
    TaskPayload,
    TaskSpec,
    WakeMode,
)


class InvalidTaskParameters(InvalidInput):
    """A name, schedule or payload is missing, malformed or not supported by the agent's engine."""

    message = "Invalid parameters"


class TaskLimitReached(InvalidInput):
    message = "An agent can have at most 20 tasks"


class TaskNotFound(NotFound):
    message = "Task not found"


class TaskAlreadyRunning(ResourceConflict):
    """A task has at most one run at a time."""

    message = "Task is running"


class TasksUnsupported(InvalidInput):
    message = "This agent's engine has no scheduled tasks"


class TaskCreateFailed(Problem):
    message = "Failed to create cron job"


class TaskListFailed(Problem):
    message = "Failed to list cron jobs"


TASK_LIMIT = 20
RUNS_DEFAULT, RUNS_LIMIT = 20, 200
NAME_LIMIT, DESCRIPTION_LIMIT, TEXT_LIMIT = 100, 1000, 16_000
TIMEOUT_LIMIT = 24 * 3600

T = TypeVar("T")
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
Fields = Mapping[str, Any]


def parse_new_task(fields: Fields) -> TaskSpec:
    """Parse a new task. By default an event goes to the main session, a turn to an isolated one."""
    change = parse_task_change(fields)
    if change.name is None or change.schedule is None or change.payload is None:
        missing = next(name for name in ("name", "schedule", "payload") if getattr(change, name) is None)
        raise InvalidTaskParameters(detail=f"{missing}: is required", field=missing)
    values: dict[str, Any] = {"session_target": _session_of(change.payload), **given_fields(change)}
    return TaskSpec(**values)


def parse_task_change(fields: Fields) -> TaskChange:
    """Parse the changes of a task; null means unchanged."""
    payload = _parse_optional(fields, "payload", _parse_payload)
    target: SessionTarget | None = _parse_optional(fields, "session_target", _choice_parser("main", "isolated"))
    if payload is not None and target not in (None, _session_of(payload)):
        detail = f"sessionTarget: must be {_session_of(payload)} for {payload.kind}"
        raise InvalidTaskParameters(detail=detail, field="sessionTarget")
    mode: WakeMode | None = _parse_optional(fields, "wake_mode", _choice_parser("now", "next-heartbeat"))
    return TaskChange(
        name=_parse_optional(fields, "name", _text_parser(NAME_LIMIT)),
        schedule=_parse_optional(fields, "schedule", _parse_schedule),
        payload=payload,
        description=_parse_optional(fields, "description", _text_parser(DESCRIPTION_LIMIT)),
        enabled=_parse_optional(fields, "enabled", parse_boolean),
        delivery=_parse_optional(fields, "delivery", _parse_delivery),
        session_target=target if payload is None else _session_of(payload),
        wake_mode=mode,
    )


def validate_task_id(task_id: str) -> str:
    """Return the id. Raises TaskNotFound if it does not have the format of an id."""
    if not _ID.fullmatch(task_id):
        raise TaskNotFound
    return task_id


def parse_boolean(value: object) -> bool | None:
    if value is not None and not isinstance(value, bool):
        raise InvalidTaskParameters(detail="must be true or false")
    return value


def _parse_schedule(value: object) -> Schedule:
    try:
        return schedules.parse_schedule(value)
    except schedules.InvalidSchedule as problem:
        raise InvalidTaskParameters(detail=str(problem)) from None


def _parse_payload(value: object) -> TaskPayload:
    """Parse a payload; a plain string is the message of an agent turn."""
    if isinstance(value, str):
        return TaskPayload(AGENT_TURN, _text_parser(TEXT_LIMIT)(value))
    fields = _parse_object(value)
    kind = fields.get("kind", AGENT_TURN)
    if kind == SYSTEM_EVENT:
        return TaskPayload(SYSTEM_EVENT, _parse_field(fields, "text", _text_parser(TEXT_LIMIT)))
    if kind != AGENT_TURN:
        raise InvalidTaskParameters(detail=f"kind: must be {AGENT_TURN} or {SYSTEM_EVENT}")
    return TaskPayload(
        kind=AGENT_TURN,
        text=_parse_field(fields, "message", _text_parser(TEXT_LIMIT)),
        model=_parse_optional(fields, "model", _text_parser(NAME_LIMIT)),
        thinking=_parse_optional(fields, "thinking", _text_parser(NAME_LIMIT)),
        timeout_seconds=_parse_optional(fields, "timeout_seconds", _parse_timeout),
    )


def _parse_delivery(value: object) -> TaskDelivery:
    fields = _parse_object(value)
    mode = fields.get("mode", "none")
    to = _parse_optional(fields, "to", _text_parser(TEXT_LIMIT))
    if mode == "webhook" and not (to or "").startswith(("http://", "https://")):
        raise InvalidTaskParameters(detail="to: must be a URL of HTTP for the mode webhook")
    if mode not in ("none", "announce", "webhook"):
        raise InvalidTaskParameters(detail="mode: must be none, announce or webhook")
    channel = _parse_optional(fields, "channel", _text_parser(NAME_LIMIT))
    return TaskDelivery(mode, channel, to, _parse_optional(fields, "best_effort", parse_boolean) is True)


def _session_of(payload: TaskPayload) -> SessionTarget:
    return "main" if payload.kind == SYSTEM_EVENT else "isolated"


def _parse_optional(fields: Fields, name: str, read: Callable[[object], T]) -> T | None:
    return None if fields.get(name) is None else _parse_field(fields, name, read)


def _parse_field(fields: Fields, name: str, read: Callable[[object], T]) -> T:
    """Read a field; an error names it as the client does."""
    try:
        return read(fields.get(name))
    except InvalidTaskParameters as problem:
        inner = problem.detail or ""
        path = to_camel(name) + ("." if re.match(r"[A-Za-z]+(\.[A-Za-z]+)*: ", inner) else ": ")
        field = (path + inner).partition(": ")[0]
        raise InvalidTaskParameters(detail=path + inner, field=field) from None


def _parse_object(value: object) -> Fields:
    if not isinstance(value, dict):
        raise InvalidTaskParameters(detail="must be an object")
    return cast("Fields", value)


def _text_parser(limit: int) -> Callable[[object], str]:
    def read(value: object) -> str:
        if not isinstance(value, str) or not value.strip() or len(value) > limit or not is_storable(value):
            raise InvalidTaskParameters(detail=f"must be text of 1 to {limit} characters")
        return value.strip()

    return read


def _choice_parser(*words: Any) -> Callable[[object], Any]:
    def read(value: object) -> Any:
        if value not in words:
            raise InvalidTaskParameters(detail=f"must be {' or '.join(words)}")
        return value

    return read


def _parse_timeout(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= TIMEOUT_LIMIT:
        raise InvalidTaskParameters(detail=f"must be from 1 to {TIMEOUT_LIMIT}")
    return value
