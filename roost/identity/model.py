"""Records of tenants, keys and tokens, and the scopes of keys."""

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
    """The row of a service JWT. Its id is the token's `jti`; the token itself is not stored.

    handle: public name for clients that send it with a secret instead of the token; `proof` is the secret's digest.
    max_uses: maximum number of requests, of which `uses` have been made.
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
    """A new key in both forms, shown only once: a token, or a handle and a secret."""

    token: Sensitive[str]
    handle: str
    secret: Sensitive[str]


@dataclass(frozen=True)
class TokenRead:
    """The first read of an agent's present gateway token by a key, or by its browser sessions."""

    agent_id: str
    in_session: bool
    read_at: datetime


@dataclass(frozen=True)
class KeyFilter:
    """Filter of a tenant's keys; `name` is a substring."""

    revoked: bool | None = None
    limited: bool | None = None
    exhausted: bool | None = None
    name: str | None = None
