"""The caller: all that the rest of the system knows of authentication."""

from dataclasses import dataclass
from enum import StrEnum


class CallerKind(StrEnum):
    SERVICE = "service"  # a person or program of the tenant, with a service JWT
    GATEWAY = "gateway"  # whoever holds an agent's gateway token
    RELAY = "relay"  # the agent itself, known by the socket that it came through
    PLATFORM = "platform"  # the agent itself, on its owner's behalf, with a platform token


class Plan(StrEnum):
    FREE = "free"
    PAID = "paid"


@dataclass(frozen=True)
class Caller:
    """Who calls. `agent_id` is set for everything but service callers and then bounds what may be touched.

    `scopes` is empty for an unrestricted service key.
    """

    kind: CallerKind
    tenant_id: str
    agent_id: str | None = None
    key_id: str | None = None
    scopes: frozenset[str] = frozenset()

    def allows(self, scope: str) -> bool:
        """Whether the credential carries `scope` (`org:agents:read`) or the broad scope over it (`org:read`)."""
        broad = f"org:{scope.rsplit(':', 1)[-1]}"
        return not self.scopes or scope in self.scopes or broad in self.scopes
