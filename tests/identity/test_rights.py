"""One rule says which credential has which right: keys by scopes, sessions by roles, tokens by their kind."""

from itertools import product

import pytest

from roost.core.right import Right
from roost.identity.caller import Caller, CallerKind, Role
from roost.identity.errors import PermissionDenied, RoleTooLow
from roost.identity.rights import check_right
from roost.identity.sessions.model import session_scopes

SCOPE = "org:agents"
OF_WRITERS = {Right.WRITE, Right.EXECUTE, Right.CREDENTIAL, Right.MANAGE}
ALL = frozenset(Right)


def rights_of(caller: Caller) -> set[Right]:
    """Return the rights that the rule gives a caller."""
    found = set[Right]()
    for right in Right:
        try:
            assert check_right(caller, right, SCOPE) is caller
        except PermissionDenied:
            continue
        except RoleTooLow:
            continue
        found.add(right)
    return found


def key(*scopes: str) -> Caller:
    return Caller(CallerKind.SERVICE, "t", key_id="k", scopes=frozenset(scopes))


def session(role: Role, *scopes: str) -> Caller:
    caller = key(*scopes)
    return Caller(CallerKind.SERVICE, "t", key_id="k", scopes=session_scopes(role, caller), role=role)


@pytest.mark.parametrize(
    ("scopes", "rights"),
    [
        ((), ALL),
        (("org:read",), {Right.NONE, Right.READ}),
        (("org:agents:read",), {Right.NONE, Right.READ}),
        (("org:write",), {Right.NONE} | OF_WRITERS),
        (("org:agents:write",), {Right.NONE} | OF_WRITERS),
        (("org:agents:read", "org:agents:write"), ALL),
        (("org:files:read", "org:files:write"), {Right.NONE}),
    ],
)
def test_a_key_has_the_rights_of_its_scopes(scopes: tuple[str, ...], rights: set[Right]) -> None:
    assert rights_of(key(*scopes)) == rights


@pytest.mark.parametrize(
    ("role", "rights"),
    [
        (Role.VIEWER, {Right.NONE, Right.READ}),
        (Role.EDITOR, ALL - {Right.MANAGE}),
        (Role.OWNER, ALL),
    ],
)
def test_a_session_has_the_rights_of_its_role(role: Role, rights: set[Right]) -> None:
    """Within the scopes of its key."""
    assert rights_of(session(role)) == rights
    assert rights_of(session(role, "org:agents:read")) == {Right.NONE, Right.READ}


def test_a_role_says_what_is_too_low() -> None:
    with pytest.raises(RoleTooLow):
        check_right(session(Role.EDITOR), Right.MANAGE, SCOPE)
    with pytest.raises(RoleTooLow):
        check_right(session(Role.VIEWER), Right.EXECUTE, SCOPE)


def test_tokens_of_an_agent_have_no_rights_of_its_owner() -> None:
    """A platform token neither runs commands nor gets further credentials."""
    for kind in (CallerKind.GATEWAY, CallerKind.RELAY):
        assert rights_of(Caller(kind, "t", agent_id="a")) == ALL - {Right.MANAGE}
    assert rights_of(Caller(CallerKind.PLATFORM, "t", agent_id="a")) == {Right.NONE, Right.READ, Right.WRITE}


def test_undeclared_operations_are_denied_to_everyone() -> None:
    for caller in (key(), session(Role.OWNER), *(Caller(kind, "t", agent_id="a") for kind in CallerKind)):
        with pytest.raises(PermissionDenied):
            check_right(caller, None, SCOPE)


def test_a_handler_that_checks_the_scope_still_needs_the_role() -> None:
    for role, right in product(Role, Right):
        caller, expected = session(role, "org:files:write"), session(role)
        if right in rights_of(expected):
            assert check_right(caller, right, None) is caller
        else:
            with pytest.raises(RoleTooLow):
                check_right(caller, right, None)
