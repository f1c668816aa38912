"""The scopes of callers, and the scopes of the keys that they may create."""

from dataclasses import replace

import pytest

from roost.core import clock
from roost.identity.caller import Caller, CallerCache, CallerKind, token_digest
from roost.identity.model import SCOPES

ROOT = Caller(CallerKind.SERVICE, "t")


def caller_with(*scopes: str) -> Caller:
    return replace(ROOT, scopes=frozenset(scopes))


def test_a_key_without_scopes_may_everything() -> None:
    assert all(ROOT.allows(scope) for scope in SCOPES)


@pytest.mark.parametrize(
    ("has", "wanted", "allowed"),
    [
        ("org:files:read", "org:files:read", True),
        ("org:files:read", "org:files:write", False),
        ("org:files:write", "org:files:read", False),
        ("org:files:read", "org:groups:read", False),
        ("org:read", "org:files:read", True),
        ("org:read", "org:agents:read", True),
        ("org:read", "org:files:write", False),
        ("org:write", "org:files:write", True),
        ("org:write", "org:files:read", False),
        ("org:files:read", "org:read", False),
        ("org:read", "org:read", True),
        ("org:read", "org:write", False),
    ],
)
def test_scopes_allow_what_they_say(has: str, wanted: str, allowed: bool) -> None:
    assert caller_with(has).allows(wanted) is allowed


@pytest.mark.parametrize(
    ("has", "wanted", "granted"),
    [
        (["org:files:read"], ["org:files:read"], True),
        (["org:files:read"], ["org:files:write"], False),
        (["org:files:write"], ["org:files:read"], True),  # write includes read
        (["org:files:write"], ["org:files:read", "org:files:write"], True),
        (["org:files:write"], ["org:groups:read"], False),
        (["org:agents:write"], ["org:agents:read"], False),  # except for agents
        (["org:write"], ["org:files:write", "org:files:read"], True),
        (["org:write"], ["org:agents:read"], False),
        (["org:write"], ["org:read"], False),
        (["org:read"], ["org:files:read", "org:agents:read", "org:read"], True),
        (["org:read", "org:files:write"], ["org:files:write", "org:groups:read"], True),
        (["org:read"], [], False),  # only a key with all scopes can create one
        (["org:read", "org:write"], [], False),
    ],
)
def test_nobody_makes_a_key_that_may_more(has: list[str], wanted: list[str], granted: bool) -> None:
    assert caller_with(*has).grants(frozenset(wanted)) is granted


@pytest.mark.parametrize("wanted", [frozenset[str](), frozenset({"org:files:read"}), SCOPES])
def test_a_key_without_scopes_makes_any(wanted: frozenset[str]) -> None:
    assert ROOT.grants(wanted)


def test_a_key_that_is_counted_makes_none_without_bounds() -> None:
    counted = replace(ROOT, is_counted=True)
    assert not counted.grants(frozenset())
    assert not counted.grants(frozenset({"org:files:read"}))
    assert not replace(caller_with("org:files:read"), is_counted=True).grants(frozenset({"org:files:read"}))


@pytest.mark.parametrize("scope", sorted(SCOPES))
def test_every_scope_grants_itself(scope: str) -> None:
    assert caller_with(scope).grants(frozenset({scope}))
    others = {other for other in SCOPES if caller_with(scope).grants(frozenset({other}))}
    assert all(other.rpartition(":")[2] == "read" or scope.endswith("write") for other in others)


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
