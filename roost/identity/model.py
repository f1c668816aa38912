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
    """A service JWT's row; its id is the token's `jti`. The token itself is not kept."""

    id: str
    tenant_id: str
    name: str
    scopes: frozenset[str]
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None = None


@dataclass(frozen=True)
class AgentToken:
    """An agent's gateway token and whose agent it is."""

    agent_id: str
    tenant_id: str
    token: Sensitive[str]
    created_at: datetime
