"""The scopes of callers, and the scopes of the keys that they may create."""

from dataclasses import replace

import pytest

from roost.identity.caller import Caller, CallerKind
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
