"""Records of tenants, keys and tokens, and the scopes of keys."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from roost.core.sensitive import Sensitive
from roost.identity.caller import Plan

DEFAULT_TENANT = "default"
KEY_LIFETIME = timedelta(days=365)
ISSUER = "roost"
AUDIENCE = "roost"

SCOPES: Mapping[str, str] = {
    "org:agents:read": "see agents, their files, logs and events",
    "org:agents:write": "change and run agents, and read their tokens",
    "org:analytics:read": "see the statistics of storage gateways",
    "org:analytics:write": "nothing more today",
    "org:files:read": "see and download files, search vectors",
    "org:files:write": "upload, change and delete files, sign uploads",
    "org:gateways:read": "see storage gateways, sign downloads",
    "org:gateways:write": "change storage gateways, their tokens and domains",
    "org:groups:read": "see groups",
    "org:groups:write": "change groups",
    "org:read": "see all of these, and keys",
    "org:write": "change all of these, and keys",
}
"""Scopes of keys, and what each allows; a scope to write storage includes the one to read it."""


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
