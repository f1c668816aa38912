"""How much one agent may have running at once: requests, and bytes of their bodies."""

from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import contextmanager

from roost.agents.models.errors import TooManyModelRequests
from roost.agents.models.model import AT_ONCE, BYTES_AT_ONCE

_RETRY_AFTER = 1.0


class ConcurrencyLimiter:
    def __init__(self, requests: int = AT_ONCE, size: int = BYTES_AT_ONCE) -> None:
        self._most_requests = requests
        self._most_bytes = size
        self._requests: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()

    @property
    def running(self) -> Mapping[str, int]:
        """Requests that are running, by owner."""
        return dict(self._requests)

    @contextmanager
    def taken(self, owner: str) -> "Generator[ConcurrencySlot, None, None]":
        """One request of `owner`'s, for as long as the context lasts. Raises TooManyAtOnce."""
        if self._requests[owner] >= self._most_requests:
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

    def hold(self, owner: str, size: int) -> None:
        if self._bytes[owner] + size > self._most_bytes:
            raise TooManyModelRequests(retry_after=_RETRY_AFTER)
        self._bytes[owner] += size


class ConcurrencySlot:
    """One running request."""

    def __init__(self, slots: ConcurrencyLimiter, owner: str) -> None:
        self.size = 0
        self._slots = slots
        self._owner = owner

    def hold(self, size: int) -> None:
        """Account for `size` more bytes. Raises TooManyAtOnce."""
        self._slots.hold(self._owner, size)
        self.size += size
