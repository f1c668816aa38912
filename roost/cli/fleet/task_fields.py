"""Tasks in one form, so that those of a file and those of an agent can be compared."""

from collections.abc import Mapping
from typing import Any, cast

from pydantic import ValidationError

from roost.agents.setup.tasks.schedules import InvalidSchedule, parse_schedule
from roost.agents.setup.tasks.schemas import ScheduleRecord, schedule_record
from roost.cli.fleet.document import FleetTask
from roost.drivers.engine.abilities.tasks import AGENT_TURN

_MINUTE_MS = 60_000
_FIELDS = ("name", "schedule", "payload", "description", "enabled", "delivery", "sessionTarget", "wakeMode")


def task_fields(task: FleetTask) -> dict[str, Any]:
    """Return the fields that a task has, as a request has them; two equal tasks have equal fields."""
    found = task.model_dump(mode="json", by_alias=True, exclude_none=True, include=set(task.model_fields_set))
    found["schedule"] = _drop_none(_complete_schedule(task.schedule).model_dump(mode="json", by_alias=True))
    found["payload"] = {key: _strip(value) for key, value in found["payload"].items()}
    return {key: _strip(value) for key, value in found.items()}


def parse_task_record(record: Mapping[str, Any]) -> FleetTask | None:
    """Return a task of an agent, None for one that a file cannot declare."""
    fields = {key: _drop_none(record[key]) for key in _FIELDS if record[key] is not None}
    try:
        return FleetTask.model_validate(fields, strict=False)
    except ValidationError:
        return None


def task_document(task: FleetTask) -> dict[str, Any]:
    """Return the shortest form of an agent's task in a file."""
    fields = task_fields(task)
    shown: dict[str, Any] = {"name": fields["name"], "schedule": schedule_document(fields["schedule"])}
    payload = fields["payload"]
    if payload.keys() == {"kind", "message"} and payload["kind"] == AGENT_TURN:
        shown["prompt"] = payload["message"]
    else:
        shown["payload"] = payload
    defaults = {"enabled": True, "delivery": {"mode": "none", "bestEffort": False}, "wakeMode": "now"}
    for key in ("description", *defaults):
        if key in fields and fields[key] != defaults.get(key):
            shown[key] = fields[key]
    return shown


def schedule_document(schedule: Mapping[str, Any]) -> Any:
    """Return the text of a schedule that has one, or its fields."""
    match schedule["kind"]:
        case "at":
            return schedule["at"]
        case "every" if schedule["everyMs"] % _MINUTE_MS == 0:
            return f"every {schedule['everyMs'] // _MINUTE_MS}m"
        case "cron" if not schedule["staggerMs"]:
            zone = "" if schedule["tz"] == "UTC" else f" {schedule['tz']}"
            return f"{schedule['expr']}{zone}"
        case _:
            return dict(schedule)


def _complete_schedule(schedule: ScheduleRecord) -> ScheduleRecord:
    """Return the schedule with its defaults; a time stays, which may have passed."""
    if schedule.kind == "at":
        return schedule
    try:
        return schedule_record(parse_schedule(schedule.model_dump()))
    except InvalidSchedule:  # the server says so
        return schedule


def _drop_none(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: one for key, one in cast("dict[str, Any]", value).items() if one is not None}


def _strip(value: Any) -> Any:
    return value.strip() if isinstance(value, str) else value
