"""Limits of tasks, and what makes one from what a person sends. Everything malformed is InvalidParameters.

Fields come with their names in snake case, and are otherwise as they were sent.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from roost.agents.tasks import schedules
from roost.agents.tasks.errors import InvalidTaskParameters, TaskNotFound
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

TASK_LIMIT = 20
RUNS_DEFAULT, RUNS_LIMIT = 20, 200
NAME_LIMIT, DESCRIPTION_LIMIT, TEXT_LIMIT = 100, 1000, 16_000
TIMEOUT_LIMIT = 24 * 3600

T = TypeVar("T")
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
Fields = Mapping[str, Any]


def parse_new_task(fields: Fields) -> TaskSpec:
    """A new task. An event goes to the agent's main session, a turn gets a session of its own."""
    asked = parse_task_change(fields)
    if asked.name is None or asked.schedule is None or asked.payload is None:
        raise InvalidTaskParameters
    return TaskSpec(
        name=asked.name,
        schedule=asked.schedule,
        payload=asked.payload,
        description=asked.description,
        enabled=asked.enabled is not False,
        delivery=asked.delivery or TaskDelivery(),
        session_target=asked.session_target or _session_of(asked.payload),
        wake_mode=asked.wake_mode or "now",
    )


def parse_task_change(fields: Fields) -> TaskChange:
    """What of a task is to be different; null is as good as left out."""
    payload = _parse_optional(fields, "payload", _parse_payload)
    target: SessionTarget | None = _parse_optional(fields, "session_target", _choice_parser("main", "isolated"))
    if payload is not None and target not in (None, _session_of(payload)):
        raise InvalidTaskParameters
    mode: WakeMode | None = _parse_optional(fields, "wake_mode", _choice_parser("now", "next-heartbeat"))
    return TaskChange(
        name=_parse_optional(fields, "name", _text_parser(NAME_LIMIT)),
        schedule=_parse_optional(fields, "schedule", _parse_schedule),
        payload=payload,
        description=_parse_optional(fields, "description", _text_parser(DESCRIPTION_LIMIT)),
        enabled=parse_boolean(fields.get("enabled")),
        delivery=_parse_optional(fields, "delivery", _parse_delivery),
        session_target=target if payload is None else _session_of(payload),
        wake_mode=mode,
    )


def validate_task_id(task_id: str) -> str:
    """What no engine would have as an id is not there. Raises UnknownTask."""
    if not _ID.fullmatch(task_id):
        raise TaskNotFound
    return task_id


def parse_boolean(found: object) -> bool | None:
    if found is not None and not isinstance(found, bool):
        raise InvalidTaskParameters
    return found


def _parse_schedule(found: object) -> Schedule:
    try:
        return schedules.parse_schedule(found)
    except schedules.InvalidSchedule:
        raise InvalidTaskParameters from None


def _parse_payload(found: object) -> TaskPayload:
    """A text alone is what the agent is told."""
    if isinstance(found, str):
        return TaskPayload(AGENT_TURN, _text_parser(TEXT_LIMIT)(found))
    fields = _parse_object(found)
    kind = fields.get("kind", AGENT_TURN)
    if kind == SYSTEM_EVENT:
        return TaskPayload(SYSTEM_EVENT, _text_parser(TEXT_LIMIT)(fields.get("text")))
    if kind != AGENT_TURN:
        raise InvalidTaskParameters
    return TaskPayload(
        kind=AGENT_TURN,
        text=_text_parser(TEXT_LIMIT)(fields.get("message")),
        model=_parse_optional(fields, "model", _text_parser(NAME_LIMIT)),
        thinking=_parse_optional(fields, "thinking", _text_parser(NAME_LIMIT)),
        timeout_seconds=_parse_optional(fields, "timeout_seconds", _parse_timeout),
    )


def _parse_delivery(found: object) -> TaskDelivery:
    fields = _parse_object(found)
    mode = fields.get("mode", "none")
    to = _parse_optional(fields, "to", _text_parser(TEXT_LIMIT))
    if mode == "webhook" and not (to or "").startswith(("http://", "https://")):
        raise InvalidTaskParameters
    if mode not in ("none", "announce", "webhook"):
        raise InvalidTaskParameters
    channel = _parse_optional(fields, "channel", _text_parser(NAME_LIMIT))
    return TaskDelivery(mode, channel, to, parse_boolean(fields.get("best_effort")) is True)


def _session_of(payload: TaskPayload) -> SessionTarget:
    return "main" if payload.kind == SYSTEM_EVENT else "isolated"


def _parse_optional(fields: Fields, name: str, read: Callable[[object], T]) -> T | None:
    found = fields.get(name)
    return None if found is None else read(found)


def _parse_object(found: object) -> Fields:
    if not isinstance(found, dict):
        raise InvalidTaskParameters
    return cast("Fields", found)


def _text_parser(limit: int) -> Callable[[object], str]:
    def read(found: object) -> str:
        if not isinstance(found, str) or not found.strip() or len(found) > limit or not is_storable(found):
            raise InvalidTaskParameters
        return found.strip()

    return read


def _choice_parser(*words: Any) -> Callable[[object], Any]:
    def read(found: object) -> Any:
        if found not in words:
            raise InvalidTaskParameters
        return found

    return read


def _parse_timeout(found: object) -> int:
    if isinstance(found, bool) or not isinstance(found, int) or not 0 < found <= TIMEOUT_LIMIT:
        raise InvalidTaskParameters
    return found
