"""The caller: all that the rest of the system knows of authentication."""

from dataclasses import dataclass
from enum import StrEnum

_NARROW = 2
"""The colons in a scope over one resource."""


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
    is_counted: bool = False
    """Whether each request with its key is one of a number that it may have."""

    def allows(self, scope: str) -> bool:
        """Whether the credential carries `scope` (`org:agents:read`) or the broad scope over it (`org:read`)."""
        broad = f"org:{scope.rsplit(':', 1)[-1]}"
        return not self.scopes or scope in self.scopes or broad in self.scopes

    def grants(self, scopes: frozenset[str]) -> bool:
        """Whether the credential may make keys with these scopes, which it has all itself; none: with all there are.

        In the storage API who may write may read.
        """
        if self.is_counted or not scopes:
            return not self.is_counted and not self.scopes
        return all(self.allows(scope) or self._writes(scope) for scope in scopes)

    def _writes(self, scope: str) -> bool:
        is_narrow = scope.count(":") == _NARROW and not scope.startswith("org:agents:")
        return is_narrow and self.allows(scope.removesuffix(":read") + ":write")
