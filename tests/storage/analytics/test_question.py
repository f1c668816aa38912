"""Which days a question means."""

from datetime import date

import pytest

from roost.storage.analytics import question
from roost.storage.analytics.errors import InvalidPeriod
from roost.storage.analytics.question import Chosen, Days, Interval

TODAY = date(2026, 3, 4)


def day(number: int, month: int = 3) -> date:
    return date(2026, month, number)


@pytest.mark.parametrize(
    ("since", "until", "days"),
    [
        (None, None, Days(day(3, 2), TODAY)),
        (day(1), day(3), Days(day(1), day(3))),
        (day(1), None, Days(day(1), TODAY)),
        (None, day(2), Days(day(1, 2), day(2))),
        (date(2020, 1, 1), day(9), Days(date(2025, 12, 5), TODAY)),
    ],
)
def test_which_days_are_meant(since: date | None, until: date | None, days: Days) -> None:
    assert question.days(Chosen(since=since, until=until), TODAY, 90) == days


def test_days_that_are_none() -> None:
    for since, until in ((date.max, None), (None, date.min), (date.max, date.max), (date.min, date.min)):
        assert not question.days(Chosen(since=since, until=until), TODAY, 90).begins(Interval.DAY)
    assert not question.days(Chosen(), TODAY, 0).begins(Interval.DAY)
    with pytest.raises(InvalidPeriod):
        question.days(Chosen(since=day(3), until=day(2)), TODAY, 90)


def test_weeks_begin_on_mondays() -> None:
    assert Days(day(1), TODAY).begins(Interval.WEEK) == [day(23, 2), day(2)]
    assert Days(day(3), TODAY).begins(Interval.DAY) == [day(3), day(4)]
