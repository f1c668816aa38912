"""What can be asked about what gateways served, and the shapes of what is told. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from enum import StrEnum

from roost.storage.analytics.errors import InvalidAnalyticsPeriod
from roost.storage.analytics.model import HitCount

DEFAULT_DAYS = 30
LIMIT_DEFAULT, LIMIT = 100, 1000


class AnalyticsDimension(StrEnum):
    """What answers are told apart by. Nothing here knows countries and regions: they are `unknown`."""

    CID = "cid"
    FILE_NAME = "file_name"
    USER_AGENT = "user_agent"
    REFERER = "referer"
    COUNTRY = "country"
    REGION = "region"


class AnalyticsMetric(StrEnum):
    REQUESTS = "requests"
    BANDWIDTH = "bandwidth"


class AnalyticsInterval(StrEnum):
    """Weeks begin on Mondays."""

    DAY = "day"
    WEEK = "week"

    def begin(self, day: date) -> date:
        return day if self is AnalyticsInterval.DAY else day - timedelta(days=day.weekday())


@dataclass(frozen=True)
class AnalyticsFilter:
    """Which answers are meant; `gateway` is a name or an address, None for all of the tenant's.

    values: what an attribute may be, for those that matter.
    """

    gateway: str | None = None
    since: date | None = None
    until: date | None = None
    values: Mapping[AnalyticsDimension, Sequence[str]] = field(default_factory=dict[AnalyticsDimension, Sequence[str]])
    status: int | None = None


@dataclass(frozen=True)
class AnalyticsOrder:
    """measure: None for the order of time."""

    measure: AnalyticsMetric | None = None
    ascending: bool = False
    limit: int = LIMIT_DEFAULT


@dataclass(frozen=True)
class DayRange:
    """From `first` to `last`, both in it; none when `last` is the earlier."""

    first: date
    last: date

    def begins(self, interval: AnalyticsInterval) -> Sequence[date]:
        """When the intervals begin that these days are in, the first of them perhaps before these days."""
        every = (self.first + timedelta(days=number) for number in range((self.last - self.first).days + 1))
        return list(dict.fromkeys(map(interval.begin, every)))


@dataclass(frozen=True)
class AnalyticsQuery:
    """The answers that a question is about: whose, of which gateway (None: of all), on which days, and what else."""

    tenant_id: str
    gateway_id: str | None
    days: DayRange
    chosen: AnalyticsFilter


@dataclass(frozen=True)
class DimensionCount:
    """How much was asked for one value of an attribute."""

    value: str
    tally: HitCount


@dataclass(frozen=True)
class PeriodCount:
    begin: date
    tally: HitCount


def days(chosen: AnalyticsFilter, today: date, kept: int) -> DayRange:
    """The days that are meant, of those that are kept; the last 30 unless it is said. Raises InvalidPeriod."""
    last = chosen.until or max(today, chosen.since or today)
    first = chosen.since or last - timedelta(days=min(DEFAULT_DAYS - 1, (last - date.min).days))
    if first > last:
        raise InvalidAnalyticsPeriod
    return DayRange(max(first, today - timedelta(days=kept - 1)), min(last, today))
