import pytest

from roost.core import clock
from roost.identity.caller import Caller, CallerKind
from roost.identity.caller_cache import CallerCache, token_digest

ME, OTHER = Caller(CallerKind.SERVICE, "t", key_id="me"), Caller(CallerKind.SERVICE, "t", key_id="other")


class FakeClock:
    """Clock that a test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = 1000.0
        monkeypatch.setattr(clock, "monotonic_seconds", lambda: self.seconds)


@pytest.fixture
def fake_clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    return FakeClock(monkeypatch)


def test_a_caller_is_known_for_a_moment(fake_clock: FakeClock) -> None:
    cache = CallerCache(lifetime=0.5)
    cache.put(b"a", ME)
    for later, found in ((0.0, ME), (0.4, ME), (0.2, None)):
        fake_clock.seconds += later
        assert cache.get(b"a") == found
    assert cache.get(b"b") is None


def test_dropped_callers_are_gone_at_once() -> None:
    cache = CallerCache(lifetime=100)
    for key, caller in ((b"a", ME), (b"b", OTHER), (b"c", ME)):
        cache.put(key, caller)
    cache.drop(lambda caller: caller.key_id == "me")
    assert [cache.get(key) for key in (b"a", b"b", b"c")] == [None, OTHER, None]


def test_it_keeps_so_many_the_newest() -> None:
    cache = CallerCache(lifetime=100, size=3)
    for number in range(5):
        cache.put(str(number).encode(), ME)
    assert [cache.get(str(number).encode()) is not None for number in range(5)] == [False, False, True, True, True]
    cache.put(b"2", OTHER)  # which makes it the most recent
    cache.put(b"5", ME)
    assert [cache.get(key) for key in (b"2", b"3", b"5")] == [OTHER, None, ME]


@pytest.mark.parametrize("token", ["", "a", "\u00fc\u6f22", "\ud800", "\0"])
def test_any_token_has_a_digest(token: str) -> None:
    assert len(token_digest(token)) == 32
    assert token_digest(token) != token_digest(token + "x")
