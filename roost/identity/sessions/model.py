"""Browser sessions: their times and limits, and the scopes of roles. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from roost.core.sensitive import Sensitive
from roost.identity.caller import Caller, Role, token_digest
from roost.identity.model import SCOPES, Tenant

LIFETIME = timedelta(days=7)
IDLE_LIFETIME = timedelta(hours=12)
TOUCH_INTERVAL = timedelta(minutes=5)
"""How exactly the last use of a session is known: each use less often than this is not written."""
SESSION_LIMIT = 100
"""Sessions of a tenant; a further one ends the one that was used least recently."""
LINK_LIFETIME = timedelta(minutes=10)
LINK_LIMIT = 20
"""Unused links of a tenant; a further one invalidates the oldest."""
SESSION_PREFIX, CODE_PREFIX = "rst_session", "rst_login"

_READ_SCOPES = frozenset(scope for scope in SCOPES if scope.endswith(":read"))
ROLE_SCOPES: Mapping[Role, frozenset[str]] = {
    Role.VIEWER: _READ_SCOPES,
    Role.EDITOR: frozenset(SCOPES),
    Role.OWNER: frozenset(SCOPES),
}
"""What each role may do, where its key may do it; `identity/rights.py` has the rights that need a higher role."""
_RANKS = {role: rank for rank, role in enumerate(Role)}


@dataclass(frozen=True)
class BrowserSession:
    """The row of a session; its token itself is not stored. It ends with its key, too."""

    digest: bytes
    tenant_id: str
    key_id: str
    role: Role
    created_at: datetime
    seen_at: datetime
    expires_at: datetime

    def is_live(self, now: datetime) -> bool:
        return now < min(self.expires_at, self.seen_at + IDLE_LIFETIME)


@dataclass(frozen=True)
class SessionLink:
    """The row of a link that signs a browser in once."""

    digest: bytes
    tenant_id: str
    key_id: str
    role: Role
    expires_at: datetime


@dataclass(frozen=True)
class IssuedLink:
    url: Sensitive[str]
    expires_at: datetime


@dataclass(frozen=True)
class SessionDetail:
    """What a page learns of its session. scopes: all that it has, also of an unrestricted one."""

    tenant: Tenant
    role: Role
    scopes: frozenset[str]
    csrf_token: str
    expires_at: datetime
    is_operator: bool


@dataclass(frozen=True)
class StartedSession:
    token: Sensitive[str]
    detail: SessionDetail


def includes_role(role: Role, needed: Role) -> bool:
    """Return whether a role has at least the rights of another."""
    return _RANKS[role] >= _RANKS[needed]


def bound_role(role: Role, caller: Caller) -> Role:
    """Return the role, lowered to what the caller may do: its own role, or what the scopes of its key allow."""
    highest = caller.role or _role_of_key(caller)
    return role if includes_role(highest, role) else highest


def session_scopes(role: Role, key: Caller) -> frozenset[str]:
    """Return the scopes of a session: those of its role that its key has. None for an unrestricted owner.

    An empty set would be unrestricted, so a key without any of them opens no session with that role.
    """
    if role is Role.OWNER and not key.scopes:
        return frozenset()
    return frozenset(scope for scope in ROLE_SCOPES[role] if key.grants(frozenset({scope})))


def csrf_token(digest: bytes) -> str:
    """Return what a page sends with each change of the session that has this digest."""
    return token_digest(f"csrf {digest.hex()}").hex()


def _role_of_key(key: Caller) -> Role:
    if not key.scopes or key.allows("org:write"):
        return Role.OWNER
    return Role.EDITOR if any(scope.endswith(":write") for scope in key.scopes) else Role.VIEWER
