from datetime import date

import pytest

from roost.agents.models.usage.model import InvalidUsagePeriod, UsagePeriod, parse_period

TODAY = date(2026, 1, 31)


@pytest.mark.parametrize(
    ("first", "last", "period"),
    [
        (None, None, (date(2026, 1, 2), TODAY)),
        (date(2026, 1, 30), None, (date(2026, 1, 30), TODAY)),
        (None, date(2025, 3, 1), (date(2025, 1, 31), date(2025, 3, 1))),
        (date(2025, 2, 1), date(2026, 2, 1), (date(2025, 2, 1), date(2026, 2, 1))),
        (date(2027, 1, 1), None, (date(2027, 1, 1), date(2027, 1, 1))),
        (None, date.min, (date.min, date.min)),
    ],
)
def test_a_period_ends_today_and_has_thirty_days(first: date | None, last: date | None, period: object) -> None:
    found = parse_period(first, last, TODAY)
    assert (found.first, found.last) == period


@pytest.mark.parametrize(
    ("first", "last"), [(date(2026, 1, 2), date(2026, 1, 1)), (date(2025, 1, 1), date(2026, 1, 2)), (date.min, None)]
)
def test_a_period_is_bounded(first: date, last: date | None) -> None:
    with pytest.raises(InvalidUsagePeriod):
        parse_period(first, last, TODAY)


def test_days_include_both_ends() -> None:
    assert UsagePeriod(date(2024, 2, 28), date(2024, 3, 1)).days == ["2024-02-28", "2024-02-29", "2024-03-01"]
