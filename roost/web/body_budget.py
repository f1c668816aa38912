"""Budget of memory for request bodies: bytes held at once, by the whole server and by each tenant."""

from collections import Counter

from roost.core.problem import Problem, ServiceUnavailable, TooManyRequests

_MIB = 1024**2
_RETRY_SECONDS = 1


class TooManyBodyBytes(TooManyRequests):
    message = "Too many request bodies at once"


class ServerBusy(ServiceUnavailable):
    message = "The server handles too many request bodies"


class BodyBudget:
    """Counter of the bytes of bodies whose requests are not yet answered. Sizes in bytes."""

    def __init__(self, total: int = 256 * _MIB, per_tenant: int = 128 * _MIB) -> None:
        self._total, self._per_tenant = total, per_tenant
        self._held = 0
        self._held_by = Counter[str]()

    def take(self, tenant_id: str, size: int) -> Problem | None:
        """Count `size` more bytes, or return why they must not be held. An unknown caller's tenant id is empty."""
        if tenant_id and self._held_by[tenant_id] + size > self._per_tenant:
            return TooManyBodyBytes(retry_after=_RETRY_SECONDS)
        if self._held + size > self._total:
            return ServerBusy(retry_after=_RETRY_SECONDS)
        self._held += size
        self._held_by[tenant_id] += size
        return None

    def release(self, tenant_id: str, size: int) -> None:
        """Release bytes that `take` counted."""
        self._held -= size
        self._held_by[tenant_id] -= size
        if not self._held_by[tenant_id]:
            del self._held_by[tenant_id]
