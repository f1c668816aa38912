"""The authenticated caller of a request, and the short-lived cache of those that were verified."""

import hashlib
from dataclasses import dataclass
from enum import StrEnum

from roost.core.actor import Actor, ActorKind
from roost.core.ttl_cache import TTLCache

_RESOURCE_SCOPE_COLONS = 2


class CallerKind(StrEnum):
    SERVICE = "service"  # a person or program of the tenant, with a service JWT
    GATEWAY = "gateway"  # the holder of an agent's gateway token
    RELAY = "relay"  # the agent itself, identified by its socket
    PLATFORM = "platform"  # the agent itself, acting for its owner with a platform token


class Role(StrEnum):
    """What a person may do in a browser session, in ascending order."""

    VIEWER = "viewer"  # reads
    EDITOR = "editor"  # also changes, but neither deletes agents nor manages keys and sessions
    OWNER = "owner"  # all


class Plan(StrEnum):
    FREE = "free"
    PAID = "paid"


@dataclass(frozen=True)
class Caller:
    """The caller of a request. `agent_id` is set for all but service callers and limits access to that agent.

    `scopes` is empty for an unrestricted service key.
    """

    kind: CallerKind
    tenant_id: str
    agent_id: str | None = None
    key_id: str | None = None
    key_name: str | None = None
    scopes: frozenset[str] = frozenset()
    is_counted: bool = False
    """Whether the key has a maximum number of requests."""
    token_digest: bytes | None = None
    """SHA-256 of the gateway token of a gateway caller."""
    session_digest: bytes | None = None
    """SHA-256 of the token of a browser session."""
    is_inside: bool = False
    """Whether a platform token counts in the agent's container alone."""
    role: Role | None = None
    """The role of a browser session, which `scopes` reflect."""

    @property
    def actor(self) -> Actor:
        """The actor of changes that the caller makes."""
        if self.kind is CallerKind.SERVICE:
            kind = ActorKind.KEY if self.session_digest is None else ActorKind.SESSION
            return Actor(kind, self.tenant_id, self.key_id, self.key_name)
        kind = ActorKind.TOKEN if self.kind is CallerKind.GATEWAY else ActorKind.AGENT
        return Actor(kind, self.tenant_id, self.agent_id)

    def allows(self, scope: str) -> bool:
        """Return whether the credential has `scope` (`org:agents:read`) or the broad scope above it (`org:read`)."""
        broad = f"org:{scope.rsplit(':', 1)[-1]}"
        return not self.scopes or scope in self.scopes or broad in self.scopes

    def grants(self, scopes: frozenset[str]) -> bool:
        """Return whether the caller may create keys with these scopes (none: unrestricted).

        It needs all of them itself. In the storage API, write includes read.
        """
        if self.is_counted or not scopes:
            return not self.is_counted and not self.scopes
        return all(self.allows(scope) or self._writes(scope) for scope in scopes)

    def _writes(self, scope: str) -> bool:
        is_narrow = scope.count(":") == _RESOURCE_SCOPE_COLONS and not scope.startswith("org:agents:")
        return is_narrow and self.allows(scope.removesuffix(":read") + ":write")


def token_digest(token: str) -> bytes:
    """Return the SHA-256 (32 bytes) that is stored and looked up instead of a token of 256 random bits."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


class CallerCache(TTLCache[bytes, Caller]):
    """Cache of callers by the digests of their credentials.

    A revocation by another process takes effect within half a second, in this one at once.
    """
