"""The only reader of the time. Tests replace `now` and `monotonic` on this module."""

import time
from datetime import UTC, datetime


def utc_now() -> datetime:
    """The current time in UTC, to the microsecond."""
    return datetime.now(UTC)


def monotonic_seconds() -> float:
    """Seconds on a clock that never goes back; only differences mean something."""
    return time.monotonic()


def format_iso(moment: datetime) -> str:
    """ISO 8601 in UTC with fractional seconds and a Z, as both contract documents write times."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f") + "Z"
