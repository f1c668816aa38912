"""The records of identity, and what a key may be limited to."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from roost.core.sensitive import Sensitive
from roost.identity.caller import Plan

DEFAULT_TENANT = "default"
KEY_LIFETIME = timedelta(days=365)
ISSUER = "roost"
AUDIENCE = "roost"

SCOPES = frozenset(
    {
        "org:agents:read",
        "org:agents:write",
        "org:analytics:read",
        "org:analytics:write",
        "org:files:read",
        "org:files:write",
        "org:groups:read",
        "org:groups:write",
        "org:gateways:read",
        "org:gateways:write",
        "org:read",
        "org:write",
    }
)


@dataclass(frozen=True)
class Tenant:
    id: str
    name: str
    plan: Plan
    created_at: datetime


@dataclass(frozen=True)
class ApiKey:
    """A service JWT's row; its id is the token's `jti`. The token itself is not kept.

    handle: its public name, for clients that show it with a secret in place of the token, of which `proof` is kept.
    max_uses: how many requests it is good for, of which it had `uses`.
    """

    id: str
    tenant_id: str
    name: str
    scopes: frozenset[str]
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None = None
    handle: str | None = None
    proof: bytes | None = None
    max_uses: int | None = None
    uses: int = 0


@dataclass(frozen=True)
class IssuedApiKey:
    """A new key in both its forms, which are shown this once: a token, or a handle and a secret."""

    token: Sensitive[str]
    handle: str
    secret: Sensitive[str]


@dataclass(frozen=True)
class KeyFilter:
    """Which of a tenant's keys are listed; `name` is a part of the name."""

    revoked: bool | None = None
    limited: bool | None = None
    exhausted: bool | None = None
    name: str | None = None


@dataclass(frozen=True)
class AgentToken:
    """An agent's gateway token and whose agent it is."""

    agent_id: str
    tenant_id: str
    token: Sensitive[str]
    created_at: datetime
