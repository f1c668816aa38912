"""Throttling of guesses: after many failed credentials from one client, the response is 429 for a while.

Valid credentials are never throttled, so guesses from a shared address do not lock out its other users.
"""

from roost.core import clock
from roost.core.rate_limit import RateLimiter, RateLimitExceeded, RatePolicy
from roost.identity.errors import TooManyAttempts


class FailedLoginThrottle:
    """Counter of failed credentials by client, at most `attempts` a minute; None for no limit."""

    def __init__(self, attempts: int | None = 300) -> None:
        self.limiter = None if attempts is None else RateLimiter(RatePolicy("failures", "failed attempts", attempts))

    def record_failure(self, client: str | None) -> None:
        """Count a failure; None is a client without limits. Raises TooManyAttempts if it has no attempts left."""
        if client is None or self.limiter is None:
            return
        try:
            self.limiter.take(client, clock.monotonic_seconds())
        except RateLimitExceeded as exceeded:
            raise TooManyAttempts(retry_after=exceeded.retry_after) from None
