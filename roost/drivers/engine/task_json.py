"""The form in which tasks are written down: OpenClaw's own JSON, kept for us by the engines that have another.

Reading is forgiving in what it skips and strict in what it takes: whatever stands there an agent may have written.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

from roost.core import clock
from roost.core.sanitize import sanitize_lines
from roost.drivers.engine.abilities.tasks import (
    CronSchedule,
    EngineTaskRefused,
    IntervalSchedule,
    OneTimeSchedule,
    Schedule,
    TaskChange,
    TaskDelivery,
    TaskPayload,
    TaskSpec,
)

Json = dict[str, Any]

_TEXT = 32_000
_LATEST_MS = 253_402_300_799_000  # the end of the year 9999: `datetime` knows no later
_PAYLOAD_TEXT = {"agentTurn": "message", "systemEvent": "text"}


def written(asked: TaskSpec | TaskChange) -> Json:
    """The fields that are given. The name is told, the description may be empty."""
    fields: Json = {"name": asked.name, "description": asked.description, "enabled": asked.enabled}
    fields |= {"sessionTarget": asked.session_target, "wakeMode": asked.wake_mode}
    if asked.schedule is not None:
        fields["schedule"] = _written_schedule(asked.schedule)
    if asked.payload is not None:
        fields["payload"] = _written_payload(asked.payload)
    if asked.delivery is not None:
        fields["delivery"] = _written_delivery(asked.delivery)
    return {name: value for name, value in fields.items() if value is not None}


def schedule(found: object) -> Schedule | None:
    fields = mapping(found)
    match fields.get("kind"), fields:
        case "at", {"at": str(at)}:
            moment = iso(at)
            return None if moment is None else OneTimeSchedule(moment)
        case "every", {"everyMs": int() | float() as every}:
            return IntervalSchedule(int(every)) if 0 < every < _LATEST_MS else None
        case "cron", {"expr": str(expr)}:
            stagger = number(fields.get("staggerMs")) or 0
            return CronSchedule(text(expr) or "", text(fields.get("tz")) or "UTC", int(stagger))
        case _:
            return None


def payload(found: object) -> TaskPayload | None:
    fields = mapping(found)
    match fields.get("kind"):
        case "agentTurn" | "systemEvent" as kind:
            told = text(fields.get(_PAYLOAD_TEXT[kind]))
        case _:
            return None
    if told is None:
        return None
    timeout = number(fields.get("timeoutSeconds"))
    return TaskPayload(
        kind,
        told,
        text(fields.get("model")),
        text(fields.get("thinking")),
        None if timeout is None else int(timeout),
    )


def delivery(found: object) -> TaskDelivery:
    fields = mapping(found)
    match fields.get("mode"):
        case "announce" | "webhook" as mode:
            return TaskDelivery(
                mode, text(fields.get("channel")), text(fields.get("to")), fields.get("bestEffort") is True
            )
        case _:
            return TaskDelivery()


def check_time_left(kept: Schedule | None, change: TaskChange) -> None:
    """Raises TaskRefused for turning on what had its one time."""
    schedule = change.schedule or kept
    if change.enabled and isinstance(schedule, OneTimeSchedule) and schedule.at <= clock.utc_now():
        raise EngineTaskRefused


def mapping(found: object) -> Mapping[str, Any]:
    return cast("Json", found) if isinstance(found, dict) else {}


def items(found: object) -> list[Mapping[str, Any]]:
    return [mapping(item) for item in cast("list[object]", found)[:1000]] if isinstance(found, list) else []


def text(found: object) -> str | None:
    """Plain, and no longer than one wants to read."""
    return sanitize_lines(found[:_TEXT]) if isinstance(found, str) and found else None


def number(found: object) -> float | None:
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    return found if 0 <= found < _LATEST_MS else None


def moment(ms: object) -> datetime | None:
    """A time from milliseconds since 1970."""
    found = number(ms)
    return None if found is None else datetime.fromtimestamp(found / 1000, UTC)


def iso(found: object) -> datetime | None:
    """A time from ISO 8601; without a zone it is UTC."""
    try:
        parsed = datetime.fromisoformat(found) if isinstance(found, str) else None
        return None if parsed is None else (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _written_schedule(asked: Schedule) -> Json:
    match asked:
        case OneTimeSchedule(at):
            return {"kind": "at", "at": at.astimezone(UTC).isoformat().replace("+00:00", "Z")}
        case IntervalSchedule(every_ms):
            return {"kind": "every", "everyMs": every_ms}
        case CronSchedule(expr, tz, stagger_ms):
            return {"kind": "cron", "expr": expr, "tz": tz, "staggerMs": stagger_ms}


def _written_payload(asked: TaskPayload) -> Json:
    options = {"model": asked.model, "thinking": asked.thinking, "timeoutSeconds": asked.timeout_seconds}
    given = {name: value for name, value in options.items() if value is not None}
    return {"kind": asked.kind, _PAYLOAD_TEXT[asked.kind]: asked.text, **given}


def _written_delivery(asked: TaskDelivery) -> Json:
    fields: Json = {"mode": asked.mode, "channel": asked.channel, "to": asked.to}
    given = {name: value for name, value in fields.items() if value is not None}
    return given | ({"bestEffort": True} if asked.best_effort else {})
