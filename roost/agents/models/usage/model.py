"""Periods of usage reports."""

from dataclasses import dataclass
from datetime import date, timedelta

from roost.core.problem import InvalidInput

DEFAULT_DAYS = 30
DAYS_LIMIT = 366
ROWS_LIMIT = 100
"""Maximum number of models and of agents in a report, the largest first."""


class InvalidUsagePeriod(InvalidInput):
    message = "The period must not end before it begins, and have at most 366 days"


@dataclass(frozen=True)
class UsagePeriod:
    """Days in UTC; both ends are included."""

    first: date
    last: date

    @property
    def days(self) -> list[str]:
        return [(self.first + timedelta(days=day)).isoformat() for day in range((self.last - self.first).days + 1)]


def parse_period(first: date | None, last: date | None, today: date) -> UsagePeriod:
    """Return a period, by default the last 30 days, or those up to `last`. Raises InvalidUsagePeriod."""
    last = last or max(today, first or today)
    first = first or last - timedelta(days=min(DEFAULT_DAYS - 1, (last - date.min).days))  # no date is before the min
    if not 0 <= (last - first).days < DAYS_LIMIT:
        raise InvalidUsagePeriod
    return UsagePeriod(first, last)
