"""Domains and their states. Pure."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

DOMAIN_LIMIT = 5
"""Domains of one agent or storage gateway (contract, Limits)."""
CHALLENGE_LABEL = "_roost-verify"
_CHALLENGE_PREFIX = "roost-verify="
MISSES_BEFORE_RELEASE = 3
"""Checks in a row in which a proof was missing, after which a domain is switched off."""


class DomainOwnerKind(StrEnum):
    AGENT = "agent"
    STORAGE_GATEWAY = "storage_gateway"


class DomainStatus(StrEnum):
    PENDING_OWNERSHIP = "pending_ownership"
    PENDING = "pending"
    """The owner is verified; the certificate is not served yet."""
    ACTIVE = "active"


@dataclass(frozen=True)
class DomainOwner:
    """What a domain leads to. id: of the agent, or the name of the storage gateway, which is never reused."""

    kind: DomainOwnerKind
    id: str
    tenant_id: str


@dataclass(frozen=True)
class Domain:
    """A name that leads to an agent or a storage gateway.

    name: the whole host name. subdomain: its first label if it is below the platform's own domain. port: of the agent's
    own program, None for its gateway. cid: what a storage gateway serves at the root, None for all it serves.
    reason: what is missing, in words. misses: checks in a row without the proof.
    """

    id: str
    owner: DomainOwner
    name: str
    subdomain: str | None
    port: int | None
    is_protected: bool
    status: DomainStatus
    created_at: datetime
    updated_at: datetime
    reason: str | None = None
    misses: int = 0
    checked_at: datetime | None = None
    cid: str | None = None

    @property
    def is_verified(self) -> bool:
        return self.status is not DomainStatus.PENDING_OWNERSHIP


@dataclass(frozen=True)
class DomainChallenge:
    """The TXT record by which a tenant proves that a domain is its own."""

    domain: str
    token: str

    @property
    def record_name(self) -> str:
        return f"{CHALLENGE_LABEL}.{self.domain}"

    @property
    def record_value(self) -> str:
        return f"{_CHALLENGE_PREFIX}{self.token}"
