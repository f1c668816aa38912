"""Limits of concurrent requests of one agent, and of the bytes of their bodies."""

from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import contextmanager

from roost.agents.models.gateway.errors import TooManyModelRequests
from roost.agents.models.gateway.model import MAX_CONCURRENT_BYTES, MAX_CONCURRENT_REQUESTS

_RETRY_AFTER = 1.0


class ConcurrencyLimiter:
    def __init__(self, requests: int = MAX_CONCURRENT_REQUESTS, size: int = MAX_CONCURRENT_BYTES) -> None:
        self._max_requests = requests
        self._max_bytes = size
        self._requests: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()

    @property
    def running_requests(self) -> Mapping[str, int]:
        """Number of running requests by owner."""
        return dict(self._requests)

    @contextmanager
    def acquire(self, owner: str) -> "Generator[ConcurrencySlot, None, None]":
        """Hold a slot for one request of `owner`. Raises TooManyModelRequests."""
        if self._requests[owner] >= self._max_requests:
            raise TooManyModelRequests(retry_after=_RETRY_AFTER)
        slot = ConcurrencySlot(self, owner)
        self._requests[owner] += 1
        try:
            yield slot
        finally:
            self._requests[owner] -= 1
            self._bytes[owner] -= slot.size
            if not self._requests[owner]:
                del self._requests[owner], self._bytes[owner]

    def reserve(self, owner: str, size: int) -> None:
        if self._bytes[owner] + size > self._max_bytes:
            raise TooManyModelRequests(retry_after=_RETRY_AFTER)
        self._bytes[owner] += size


class ConcurrencySlot:
    """One running request."""

    def __init__(self, limiter: ConcurrencyLimiter, owner: str) -> None:
        self.size = 0
        self._limiter = limiter
        self._owner = owner

    def reserve(self, size: int) -> None:
        """Reserve `size` more bytes. Raises TooManyModelRequests."""
        self._limiter.reserve(self._owner, size)
        self.size += size
