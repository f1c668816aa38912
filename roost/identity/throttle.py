"""Throttling of guesses: after many failed credentials from one peer, the response is 429 for a while.

Valid credentials are never throttled, so guesses from a shared address do not lock out its other users.
"""

from collections import OrderedDict

from roost.core import clock
from roost.identity.errors import TooManyAttempts

_WINDOW_SECONDS = 60.0


class FailedLoginThrottle:
    def __init__(self, attempts: int = 300, size: int = 10_000) -> None:
        self._attempts = attempts
        self._size = size
        self._failures: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def record_failure(self, peer: str) -> None:
        """Count a failure. Raises TooManyAttempts if the peer has no attempts left in this minute."""
        now = clock.monotonic_seconds()
        began, count = self._failures.get(peer, (now, 0))
        if now - began > _WINDOW_SECONDS:
            began, count = now, 0
        self._failures[peer] = (began, count + 1)
        self._failures.move_to_end(peer)
        if len(self._failures) > self._size:
            self._failures.popitem(last=False)
        if count >= self._attempts:
            raise TooManyAttempts(retry_after=began + _WINDOW_SECONDS - now)
