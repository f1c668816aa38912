"""The only reader of the time. Tests replace the functions of this module."""

import time
from datetime import UTC, datetime


def utc_now() -> datetime:
    return datetime.now(UTC)


def monotonic_seconds() -> float:
    """Return monotonic time in seconds; only differences are meaningful."""
    return time.monotonic()


def format_iso(moment: datetime) -> str:
    """Format a time as ISO 8601 in UTC with microseconds and Z, as in both contract documents."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")[:-6] + "Z"
