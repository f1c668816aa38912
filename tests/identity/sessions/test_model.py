"""Roles as sets of scopes, within those of a key."""

import pytest

from roost.identity.caller import Caller, CallerKind, Role
from roost.identity.sessions.model import bound_role, csrf_token, includes_role, session_scopes

ALL = ("agents", "analytics", "files", "gateways", "groups")
READ = {"org:read", *(f"org:{name}:read" for name in ALL)}


def key(*scopes: str, role: Role | None = None) -> Caller:
    return Caller(CallerKind.SERVICE, "t", key_id="k", scopes=frozenset(scopes), role=role)


@pytest.mark.parametrize(
    ("role", "scopes", "expected"),
    [
        (Role.OWNER, (), set()),  # unrestricted
        (Role.EDITOR, (), READ | {scope.replace("read", "write") for scope in READ}),
        (Role.VIEWER, (), READ),
        (Role.VIEWER, ("org:files:write",), {"org:files:read"}),
        (Role.VIEWER, ("org:agents:write",), set()),
        (Role.VIEWER, ("org:read",), READ),
        (Role.EDITOR, ("org:agents:read",), {"org:agents:read"}),
        (Role.OWNER, ("org:files:write", "org:agents:read"), {"org:files:read", "org:files:write", "org:agents:read"}),
    ],
)
def test_scopes_are_those_of_role_and_key(role: Role, scopes: tuple[str, ...], expected: set[str]) -> None:
    assert session_scopes(role, key(*scopes)) == expected


@pytest.mark.parametrize(
    ("asked", "maker", "bounded"),
    [
        (Role.OWNER, key(), Role.OWNER),
        (Role.VIEWER, key(), Role.VIEWER),
        (Role.OWNER, key("org:read", "org:write"), Role.OWNER),
        (Role.OWNER, key("org:files:write"), Role.EDITOR),
        (Role.EDITOR, key("org:read"), Role.VIEWER),
        (Role.OWNER, key(role=Role.EDITOR), Role.EDITOR),
        (Role.VIEWER, key(role=Role.OWNER), Role.VIEWER),
    ],
)
def test_nobody_gives_more_than_they_have(asked: Role, maker: Caller, bounded: Role) -> None:
    assert bound_role(asked, maker) is bounded


def test_roles_include_lower_ones() -> None:
    roles = [Role.VIEWER, Role.EDITOR, Role.OWNER]
    assert [[includes_role(role, needed) for needed in roles] for role in roles] == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]


def test_a_csrf_token_belongs_to_one_session() -> None:
    first, second = csrf_token(bytes(32)), csrf_token(bytes(31) + b"\1")
    assert first == csrf_token(bytes(32)) != second
    assert len(first) == 64
