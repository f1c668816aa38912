"""Which credential has which right: the scopes of keys, the roles of browser sessions, the kinds of tokens. Pure."""

from collections.abc import Mapping

from roost.core.right import Right
from roost.identity.caller import Caller, CallerKind, Role
from roost.identity.errors import PermissionDenied, RoleTooLow
from roost.identity.sessions.model import includes_role

SCOPE_ACTIONS: Mapping[Right, str] = {**dict.fromkeys(Right, "write"), Right.READ: "read"}
"""The last part of the scope that gives a right."""
_ROLES: Mapping[Right, Role] = {**dict.fromkeys(Right, Role.EDITOR), Right.READ: Role.VIEWER, Right.MANAGE: Role.OWNER}
"""The lowest role of a browser session that has a right, where the scopes of its key give that, too."""
_OF_AN_AGENT = frozenset(Right) - {Right.MANAGE}
TOKEN_RIGHTS: Mapping[CallerKind, frozenset[Right]] = {
    CallerKind.GATEWAY: _OF_AN_AGENT,
    CallerKind.RELAY: _OF_AN_AGENT,
    CallerKind.PLATFORM: frozenset({Right.NONE, Right.READ, Right.WRITE}),
}
"""The rights of credentials of one agent, where a handler accepts them."""


def check_right(caller: Caller, right: Right | None, scope: str | None) -> Caller:
    """Return the caller if it has the right. Raises PermissionDenied, RoleTooLow.

    scope: the first part of the scopes that count, `org:agents`, which broad ones (`org:read`) include; None if the
        handler checks the scope.
    """
    if right is None or right not in TOKEN_RIGHTS.get(caller.kind, Right):
        raise PermissionDenied
    if right is Right.NONE or caller.kind is not CallerKind.SERVICE:
        return caller
    if caller.role is not None and not includes_role(caller.role, _ROLES[right]):
        raise RoleTooLow
    if scope is not None and not caller.allows(f"{scope}:{SCOPE_ACTIONS[right]}"):
        raise PermissionDenied
    return caller
