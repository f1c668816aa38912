"""Which days a question means."""

from datetime import date

import pytest

from roost.storage.analytics import query
from roost.storage.analytics.errors import InvalidAnalyticsPeriod
from roost.storage.analytics.query import AnalyticsFilter, AnalyticsInterval, DayRange

TODAY = date(2026, 3, 4)


def day(number: int, month: int = 3) -> date:
    return date(2026, month, number)


@pytest.mark.parametrize(
    ("since", "until", "days"),
    [
        (None, None, DayRange(day(3, 2), TODAY)),
        (day(1), day(3), DayRange(day(1), day(3))),
        (day(1), None, DayRange(day(1), TODAY)),
        (None, day(2), DayRange(day(1, 2), day(2))),
        (date(2020, 1, 1), day(9), DayRange(date(2025, 12, 5), TODAY)),
    ],
)
def test_which_days_are_meant(since: date | None, until: date | None, days: DayRange) -> None:
    assert query.days(AnalyticsFilter(since=since, until=until), TODAY, 90) == days


def test_days_that_are_none() -> None:
    for since, until in ((date.max, None), (None, date.min), (date.max, date.max), (date.min, date.min)):
        assert not query.days(AnalyticsFilter(since=since, until=until), TODAY, 90).begins(AnalyticsInterval.DAY)
    assert not query.days(AnalyticsFilter(), TODAY, 0).begins(AnalyticsInterval.DAY)
    with pytest.raises(InvalidAnalyticsPeriod):
        query.days(AnalyticsFilter(since=day(3), until=day(2)), TODAY, 90)


def test_weeks_begin_on_mondays() -> None:
    assert DayRange(day(1), TODAY).begins(AnalyticsInterval.WEEK) == [day(23, 2), day(2)]
    assert DayRange(day(3), TODAY).begins(AnalyticsInterval.DAY) == [day(3), day(4)]
