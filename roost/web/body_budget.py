"""Budget of memory for request bodies: bytes held at once, shared fairly between tenants."""

from collections import Counter

from roost.core.problem import Problem, ServiceUnavailable, TooManyRequests

_RETRY_SECONDS = 1


class TooManyBodyBytes(TooManyRequests):
    message = "Too many request bodies at once"


class ServerBusy(ServiceUnavailable):
    message = "The server handles too many request bodies"


class BodyBudget:
    """Counter of the bytes of bodies whose requests are not yet answered.

    A tenant may hold as much as then remains free: alone half of the total, with another a third, and so on. Whatever a
    few tenants hold, others get a share (dynamic thresholds of shared buffers, Choudhury and Hahne 1998).
    """

    def __init__(self, total: int = 256 * 1024**2) -> None:
        """Limit the bytes of all bodies to `total`."""
        self._total = total
        self._held = 0
        self._held_by = Counter[str]()

    def take(self, tenant_id: str, size: int) -> Problem | None:
        """Count `size` more bytes, or return why they must not be held. An unknown caller's tenant id is empty."""
        held = self._held_by[tenant_id]
        if held + size > self._total - self._held - size:
            return (TooManyBodyBytes if held else ServerBusy)(retry_after=_RETRY_SECONDS)
        self._held += size
        self._held_by[tenant_id] += size
        return None

    def release(self, tenant_id: str, size: int) -> None:
        """Release bytes that `take` counted."""
        self._held -= size
        self._held_by[tenant_id] -= size
        if not self._held_by[tenant_id]:
            del self._held_by[tenant_id]
