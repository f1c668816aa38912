"""Counted attributes are cut, cleaned and bounded; a query has a default period."""

from datetime import date, timedelta

import pytest

from roost.storage.gateways.analytics import model
from roost.storage.gateways.analytics.model import OTHER, UNKNOWN, Hit, HitCount, InvalidAnalyticsPeriod

TODAY = date(2026, 3, 4)
HIT = Hit("tenant", "2026-03-04", "gateway", "cid", "a.txt", 200, "curl", "https://a.example")


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("https://App.example:8443/a/b?token=secret#x", "https://app.example:8443"),
        ("http://a.example", "http://a.example"),
        ("http://[::1]:80/", "http://[::1]:80"),
        ("android-app://org.example", "android-app://org.example"),
        ("https://user:secret@a.example/", ""),
        ("https://a.example\x1b[2J/", ""),
        ("https://" + "a" * 400, ""),
        ("https:///x", ""),
        ("javascript:alert(1)", ""),
        ("a.example", ""),
        ("", ""),
    ],
)
def test_only_the_origin_of_a_referer_is_kept(sent: str, kept: str) -> None:
    assert model.referer_origin(sent) == kept


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("curl/8.1", "curl/8.1"),
        ("", UNKNOWN),
        (" \t", UNKNOWN),
        ("a\x00b\x1b[31mc\nd\ud800", "ab[31mcd"),
        ("x" * 300, "x" * 200),
        ("Grüße", "Grüße"),
    ],
)
def test_texts_of_visitors_are_cleaned(sent: str, kept: str) -> None:
    assert model.clean_text(sent, 200) == kept


def counts(number: int) -> dict[Hit, HitCount]:
    """Return hits of different user agents and CIDs, each with one request more than the one before."""
    return {HIT._replace(user_agent=str(n), cid=f"cid{n}"): HitCount(n + 1, 10) for n in range(number)}


def test_hits_beyond_the_limits_are_merged_unless_they_are_the_most_frequent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "DETAILED_ROWS", 3)
    monkeypatch.setattr(model, "CID_ROWS", 2)
    given, stored = counts(8), set[bytes]()
    limited = model.limit_rows(given, stored)
    assert {(hit.cid, hit.user_agent): count.requests for hit, count in limited.items()} == {
        ("cid7", "7"): 8,
        ("cid6", "6"): 7,
        ("cid5", "5"): 6,
        ("cid4", OTHER): 5,
        ("cid3", OTHER): 4,
        (OTHER, OTHER): 6,
    }
    assert sum(count.bandwidth for count in limited.values()) == 80
    again = model.limit_rows(given, stored)
    assert {hit.digest for hit in again} == {hit.digest for hit in limited} == stored


def test_a_digest_covers_all_attributes() -> None:
    changed = ({"gateway_id": "x"}, {"cid": "x"}, {"file_name": "x"}, {"status": 206}, {"referer": "x"})
    assert len({hit.digest for hit in (HIT, *(HIT._replace(**change) for change in changed))}) == 6


def day(number: int, month: int = 3) -> date:
    return date(2026, month, number)


@pytest.mark.parametrize(
    ("start", "end", "days"),
    [
        (None, None, (day(3, 2), TODAY)),
        (day(1), day(3), (day(1), day(3))),
        (day(1), None, (day(1), TODAY)),
        (None, day(2), (day(1, 2), day(2))),
        (day(9), None, (day(9), day(9))),
        (date.max, None, (date.max, date.max)),
        (None, date.min, (date.min, date.min)),
    ],
)
def test_days_of_a_query(start: date | None, end: date | None, days: tuple[date, date]) -> None:
    assert model.query_days(start, end, TODAY) == days


def test_a_period_that_ends_before_it_starts_is_refused() -> None:
    with pytest.raises(InvalidAnalyticsPeriod):
        model.query_days(day(3), day(2), TODAY)


def test_weeks_start_on_monday() -> None:
    days = [day(1) + timedelta(days=number) for number in range(4)]
    assert [model.period_start(one, "week") for one in days] == [day(23, 2), day(2), day(2), day(2)]
    assert [model.period_start(one, "day") for one in days] == days
