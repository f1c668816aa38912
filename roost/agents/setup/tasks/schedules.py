"""Parsing and validation of task schedules.

Accepts cron expressions (`0 9 * * 1-5`), optionally followed by a time zone (`0 9 * * * Europe/Berlin`), `@daily`,
`every 10m`, a time such as `2027-01-31T09:00:00Z` (UTC by default), or an object with `kind` `at`, `every` or `cron`.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from roost.core import clock
from roost.drivers.engine.abilities.tasks import CronSchedule, IntervalSchedule, OneTimeSchedule, Schedule

MIN_INTERVAL = timedelta(minutes=1)
MAX_AHEAD = timedelta(days=3660)
STAGGER_LIMIT_MS = 3_600_000

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_CRON_FIELDS = (
    # name, least and largest value, names of values
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of week", 0, 7, _DAYS),
)
_ITEM = re.compile(r"(?:\*|([0-9]{1,2}|[a-z]{3})(?:-([0-9]{1,2}|[a-z]{3}))?)(?:/([1-9][0-9]?))?")
_MAX_CRON_LENGTH = 500
_WEEKDAYS = re.compile(r"[0-9*/,-]+|((sun|mon|tue|wed|thu|fri|sat)[,-]?)+", re.IGNORECASE)
_ZONE = re.compile(r"(?!posix|right/|localtime|Factory)[A-Za-z][A-Za-z0-9_+-]{0,31}(/[A-Za-z0-9_+-]{1,31}){0,2}")
_EVERY = re.compile(
    r"every\s++(?:(\d{1,9})\s*+)?(m|min|minutes?|h|hours?|d|days?|s|sec|seconds?|w|weeks?)", re.IGNORECASE
)
_FORMS = (
    "must be five fields of cron and optionally a time zone (0 9 * * 1-5 Europe/Berlin), @daily or another nickname, "
    "every 10m, a time such as 2027-01-31T09:00:00Z, or an object with kind at, every or cron"
)
_UNITS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000}
_NICKNAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}


class InvalidSchedule(ValueError):  # noqa: N818 - describes the schedule
    """The schedule is malformed, never due, over, too far ahead, or more frequent than once a minute.

    Its text says what is allowed.
    """

    def __init__(self, allowed: str = _FORMS) -> None:
        super().__init__(allowed)


def parse_schedule(value: object) -> Schedule:
    """Parse a schedule from a string or an object. Raises InvalidSchedule."""
    if isinstance(value, str):
        return _parse_text(value.strip())
    if not isinstance(value, dict):
        raise InvalidSchedule
    fields = cast("Mapping[str, Any]", value)
    match fields.get("kind"):
        case "at":
            return _parse_time(fields.get("at"))
        case "every":
            return _parse_interval(fields.get("every_ms"))
        case "cron":
            return _parse_cron(fields.get("expr"), fields.get("tz"), fields.get("stagger_ms"))
        case _:
            raise InvalidSchedule


def _parse_text(text: str) -> Schedule:
    if every := _EVERY.fullmatch(text):
        return _parse_interval(int(every[1] or 1) * _UNITS[every[2][0].lower()])
    if re.match(r"\d{4}-", text):
        return _parse_time(text)
    return _parse_cron(text, None, None)


def _parse_time(value: object) -> OneTimeSchedule:
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) and len(value) <= 40 else None
        at = None if at is None else (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidSchedule from None
    if at is None or not timedelta(0) < at - clock.utc_now() <= MAX_AHEAD:
        raise InvalidSchedule("a time must be in ISO 8601, in the future, and within ten years")
    return OneTimeSchedule(at)


def _parse_interval(value: object) -> IntervalSchedule:
    least, most = MIN_INTERVAL / timedelta(milliseconds=1), MAX_AHEAD / timedelta(milliseconds=1)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidSchedule("an interval must be from one minute to ten years, everyMs in milliseconds")
    return IntervalSchedule(value)


def _parse_cron(expr: object, tz: object, stagger: object) -> CronSchedule:
    if not isinstance(expr, str) or not isinstance(tz, str | None):
        raise InvalidSchedule
    fields = expr.split()
    if fields and fields[0].lower() in _NICKNAMES:
        fields = [*_NICKNAMES[fields[0].lower()].split(), *fields[1:]]
    if len(fields) == 6 and tz is None and not _WEEKDAYS.fullmatch(fields[5]):
        tz = fields.pop()
    if len(fields) != 5 or len(expr) > _MAX_CRON_LENGTH:
        raise InvalidSchedule
    for text, (name, least, most, names) in zip(fields, _CRON_FIELDS, strict=True):
        items = text.lower().split(",")
        is_unclear = items[1:] and "*" in (text if name.startswith("day") else items)  # engines differ
        if is_unclear or not all(_is_cron_item(item, least, most, names) for item in items):
            words = f" or {names[0]} to {names[-1]}" if names else ""
            allowed = f"{least} to {most}{words}, *, lists, ranges and steps from 1 are allowed"
            raise InvalidSchedule(
                f"the {name} {text[:50]!r} cannot be read: {allowed}; n-m ascends, /s follows * or n-m"
            )
    _check_due(" ".join([*fields[:4], "*"]))  # a weekday does not replace a date that never comes
    return CronSchedule(" ".join(fields), _parse_zone(tz or "UTC"), _parse_stagger(stagger))


def _is_cron_item(item: str, least: int, most: int, names: Sequence[str]) -> bool:
    """Return whether an item of a list is one that all engines understand alike: not L, 1#1, 5/2, */90, 5-1, 1-1."""
    if (found := _ITEM.fullmatch(item)) is None:
        return False
    given = [one for one in found.groups()[:2] if one is not None]
    values = [int(one) if one.isdecimal() else names.index(one) + least if one in names else -1 for one in given]
    steps = int(found[3] or 0) <= (7 if names is _DAYS else most - least + 1) and (found[3] is None or len(given) != 1)
    return steps and values == sorted(set(values)) and all(least <= value <= most for value in values)


def _check_due(expr: str) -> None:
    try:
        due = next(CronSim(expr, clock.utc_now())) - clock.utc_now()
    except (CronSimError, StopIteration):
        due = timedelta.max
    if due > MAX_AHEAD:
        raise InvalidSchedule("it is never due, or not within ten years")


def _parse_zone(tz: str) -> str:
    with suppress(ValueError, OSError, LookupError):
        if _ZONE.fullmatch(tz):
            return ZoneInfo(tz).key
    raise InvalidSchedule("the time zone must be one of the IANA database, such as Europe/Berlin")


def _parse_stagger(value: object) -> int:
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= STAGGER_LIMIT_MS:
        raise InvalidSchedule(f"staggerMs must be from 0 to {STAGGER_LIMIT_MS}")
    return value
