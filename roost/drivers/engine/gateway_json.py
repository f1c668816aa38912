"""The JSON forms of tasks and devices: OpenClaw's own, which the drivers of other engines use too.

The values are untrusted, because an agent can have written them: values of an unexpected type are ignored, texts are
sanitized and cut.
"""

from datetime import UTC, datetime

from roost.core import clock
from roost.core.sanitize import sanitize_line, sanitize_lines
from roost.drivers.engine.abilities.devices import Device, DeviceList, PairedDevice, PendingDevice
from roost.drivers.engine.abilities.tasks import (
    CronSchedule,
    EngineTaskRefused,
    IntervalSchedule,
    OneTimeSchedule,
    Schedule,
    Task,
    TaskChange,
    TaskDelivery,
    TaskPayload,
    TaskRun,
    TaskSpec,
)
from roost.drivers.engine.contract import EngineFailed
from roost.drivers.model.json_access import Json, as_list, as_object

_MAX_CHARACTERS = 32_000
_MAX_ITEMS = 1000
_MAX_DEVICES = 200
_MAX_LINE = 200
_MAX_MS = 253_402_300_799_000  # the end of the year 9999, the maximum of `datetime`
_PAYLOAD_TEXT = {"agentTurn": "message", "systemEvent": "text"}


def serialize_task(task: TaskSpec | TaskChange) -> Json:
    """Return the JSON fields of a task, without those that are None."""
    fields: Json = {"name": task.name, "description": task.description, "enabled": task.enabled}
    fields |= {"sessionTarget": task.session_target, "wakeMode": task.wake_mode}
    if task.schedule is not None:
        fields["schedule"] = _serialize_schedule(task.schedule)
    if task.payload is not None:
        fields["payload"] = _serialize_payload(task.payload)
    if task.delivery is not None:
        fields["delivery"] = _serialize_delivery(task.delivery)
    return {name: value for name, value in fields.items() if value is not None}


def parse_task(job: Json) -> Task:
    """Parse a task with its state. Raises EngineFailed for one without an id."""
    if not isinstance(job.get("id"), str):
        raise EngineFailed("The gateway's answer has no task")
    state = as_object(job.get("state"))
    enabled = job.get("enabled") is True
    return Task(
        id=job["id"],
        name=parse_text(job.get("name")) or job["id"],
        description=parse_text(job.get("description")),
        enabled=enabled,
        schedule=parse_schedule(job.get("schedule")),
        payload=parse_payload(job.get("payload")),
        delivery=parse_delivery(job.get("delivery")),
        session_target="main" if job.get("sessionTarget") == "main" else "isolated",
        wake_mode="next-heartbeat" if job.get("wakeMode") == "next-heartbeat" else "now",
        created_at=parse_milliseconds(job.get("createdAtMs")),
        next_run_at=parse_milliseconds(state.get("nextRunAtMs")) if enabled else None,
        last_run_at=parse_milliseconds(state.get("lastRunAtMs")),
        last_status=parse_text(state.get("lastRunStatus")),
        last_error=parse_text(state.get("lastError")),
        running=parse_number(state.get("runningAtMs")) is not None,
    )


def parse_run(entry: Json) -> TaskRun:
    return TaskRun(
        id=parse_text(entry.get("runId")) or str(entry.get("ts", "")),
        status=parse_text(entry.get("status")) or "unknown",
        started_at=parse_milliseconds(entry.get("runAtMs", entry.get("ts"))),
        duration_ms=parse_integer(entry.get("durationMs")),
        summary=parse_text(entry.get("summary")),
        error=parse_text(entry.get("error")),
    )


def parse_schedule(found: object) -> Schedule | None:
    fields = as_object(found)
    match fields.get("kind"), fields:
        case "at", {"at": str(at)}:
            moment = parse_iso_time(at)
            return None if moment is None else OneTimeSchedule(moment)
        case "every", {"everyMs": int() | float() as every}:
            return IntervalSchedule(int(every)) if 0 < every < _MAX_MS else None
        case "cron", {"expr": str(expr)}:
            stagger = parse_number(fields.get("staggerMs")) or 0
            return CronSchedule(parse_text(expr) or "", parse_text(fields.get("tz")) or "UTC", int(stagger))
        case _:
            return None


def parse_payload(found: object) -> TaskPayload | None:
    fields = as_object(found)
    match fields.get("kind"):
        case "agentTurn" | "systemEvent" as kind:
            text = parse_text(fields.get(_PAYLOAD_TEXT[kind]))
        case _:
            return None
    if text is None:
        return None
    return TaskPayload(
        kind,
        text,
        parse_text(fields.get("model")),
        parse_text(fields.get("thinking")),
        parse_integer(fields.get("timeoutSeconds")),
    )


def parse_delivery(found: object) -> TaskDelivery:
    fields = as_object(found)
    match fields.get("mode"):
        case "announce" | "webhook" as mode:
            channel, to = parse_text(fields.get("channel")), parse_text(fields.get("to"))
            return TaskDelivery(mode, channel, to, fields.get("bestEffort") is True)
        case _:
            return TaskDelivery()


def check_time_left(kept: Schedule | None, change: TaskChange) -> None:
    """Raise EngineTaskRefused if the change enables a task whose one time has passed."""
    schedule = change.schedule or kept
    if change.enabled and isinstance(schedule, OneTimeSchedule) and schedule.at <= clock.utc_now():
        raise EngineTaskRefused


def parse_device_list(found: object) -> DeviceList:
    """Parse the pending and paired devices. Raises EngineFailed unless `found` is an object."""
    if not isinstance(found, dict):
        raise EngineFailed("The gateway's list of devices is not an object")
    pending, paired = (
        [as_object(row) for row in as_list(as_object(found).get(name))[:_MAX_DEVICES]] for name in ("pending", "paired")
    )
    return DeviceList(
        [_pending(row, request_id) for row in pending if (request_id := _short_line(row.get("requestId")))],
        [_paired(row) for row in paired],
    )


def parse_objects(found: object) -> list[Json]:
    return [as_object(item) for item in as_list(found)[:_MAX_ITEMS]]


def parse_text(found: object) -> str | None:
    """Return a sanitized text, cut to _MAX_CHARACTERS; None if it is empty."""
    return sanitize_lines(found[:_MAX_CHARACTERS]) if isinstance(found, str) and found else None


def parse_number(found: object) -> float | None:
    """Return a number from 0 to _MAX_MS."""
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    return found if 0 <= found < _MAX_MS else None


def parse_integer(found: object) -> int | None:
    number = parse_number(found)
    return None if number is None else int(number)


def parse_milliseconds(found: object) -> datetime | None:
    """Return the time of a number of milliseconds since 1970."""
    number = parse_number(found)
    return None if number is None else datetime.fromtimestamp(number / 1000, UTC)


def parse_seconds(found: object) -> datetime | None:
    """Return the time of a number of seconds since 1970."""
    number = parse_number(found)
    return None if number is None or number * 1000 >= _MAX_MS else datetime.fromtimestamp(number, UTC)


def parse_iso_time(found: object) -> datetime | None:
    """Return the time of an ISO 8601 text; UTC is the default zone."""
    try:
        parsed = datetime.fromisoformat(found) if isinstance(found, str) else None
        return None if parsed is None else (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _serialize_schedule(schedule: Schedule) -> Json:
    match schedule:
        case OneTimeSchedule(at):
            return {"kind": "at", "at": at.astimezone(UTC).isoformat().replace("+00:00", "Z")}
        case IntervalSchedule(every_ms):
            return {"kind": "every", "everyMs": every_ms}
        case CronSchedule(expr, tz, stagger_ms):
            return {"kind": "cron", "expr": expr, "tz": tz, "staggerMs": stagger_ms}


def _serialize_payload(payload: TaskPayload) -> Json:
    options = {"model": payload.model, "thinking": payload.thinking, "timeoutSeconds": payload.timeout_seconds}
    given = {name: value for name, value in options.items() if value is not None}
    return {"kind": payload.kind, _PAYLOAD_TEXT[payload.kind]: payload.text, **given}


def _serialize_delivery(delivery: TaskDelivery) -> Json:
    fields: Json = {"mode": delivery.mode, "channel": delivery.channel, "to": delivery.to}
    given = {name: value for name, value in fields.items() if value is not None}
    return given | ({"bestEffort": True} if delivery.best_effort else {})


def _pending(row: Json, request_id: str) -> PendingDevice:
    return PendingDevice(
        request_id=request_id,
        device=_device(row),
        requested_at=parse_milliseconds(row.get("ts")),
        is_repair=row.get("isRepair") is True,
    )


def _paired(row: Json) -> PairedDevice:
    connected = row.get("connected")
    return PairedDevice(
        device=_device(row),
        paired_at=parse_milliseconds(row.get("approvedAtMs")),
        last_seen_at=parse_milliseconds(row.get("lastSeenAtMs")),
        connected=connected if isinstance(connected, bool) else None,
    )


def _device(row: Json) -> Device:
    return Device(
        device_id=_short_line(row.get("deviceId")) or "",
        display_name=_short_line(row.get("displayName")),
        platform=_short_line(row.get("platform")),
        client_id=_short_line(row.get("clientId")),
        client_mode=_short_line(row.get("clientMode")),
        role=_short_line(row.get("role")),
        scopes=[scope for scope in map(_short_line, as_list(row.get("scopes"))[:_MAX_DEVICES]) if scope],
        remote_ip=_short_line(row.get("remoteIp")),
    )


def _short_line(value: object) -> str | None:
    return sanitize_line(value[:_MAX_LINE]) if isinstance(value, str) and value else None
