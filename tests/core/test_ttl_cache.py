"""Cached values expire after a fixed time and when they are dropped."""

import pytest

from roost.core import clock
from roost.core.ttl_cache import TTLCache


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    moment = [100.0]
    monkeypatch.setattr(clock, "monotonic_seconds", lambda: moment[0])
    return moment


def test_an_entry_counts_for_its_lifetime(now: list[float]) -> None:
    recent = TTLCache[str, int](lifetime=0.5)
    recent.put("one", 1)
    now[0] += 0.5
    assert recent.get("one") == 1
    now[0] += 0.01
    assert recent.get("one") is None


def test_putting_it_again_begins_its_time_again(now: list[float]) -> None:
    recent = TTLCache[str, int](lifetime=0.5)
    recent.put("one", 1)
    now[0] += 0.4
    recent.put("one", 2)
    now[0] += 0.4
    assert recent.get("one") == 2


@pytest.mark.usefixtures("now")
def test_the_oldest_go_when_there_are_too_many() -> None:
    recent = TTLCache[str, int](size=2)
    for number, name in enumerate(("one", "two", "one", "three")):
        recent.put(name, number)
    assert [recent.get(name) for name in ("one", "two", "three")] == [2, None, 3]


@pytest.mark.usefixtures("now")
def test_dropped_entries_are_gone_at_once_and_others_stay() -> None:
    recent = TTLCache[str, int]()
    for number in range(4):
        recent.put(str(number), number)
    recent.drop(lambda value: value % 2 == 0)
    assert [recent.get(str(number)) for number in range(4)] == [None, 1, None, 3]
