"""Rate limits for many keys in bounded memory, by the generic cell rate algorithm (GCRA). No I/O.

Each key has a quota that refills at an even speed. Its whole state is the moment at which the quota is full again, so
a key that used nothing for a window needs no memory.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from heapq import nlargest
from operator import itemgetter

from roost.core.problem import TooManyRequests

_EPSILON = 1e-6  # seconds: sums of intervals are not exact
_SHARED_PART = 0.02  # of the quota: less of it is not worth a word to other servers


@dataclass(frozen=True)
class RatePolicy:
    """At most `quota` units at once, refilled in `window` seconds. name, unit (in the plural): for responses."""

    name: str
    unit: str
    quota: int
    window: int = 60


class RateLimitExceeded(TooManyRequests):
    """A key has used its quota; `retry_after` says when there is a unit again."""

    def __init__(self, policy: RatePolicy, retry_after: float) -> None:
        self.policy = policy
        super().__init__(
            f"Too many {policy.unit}: the limit is {policy.quota} in {policy.window} seconds", retry_after=retry_after
        )


class RateLimiter:
    """Limiter of one policy, with at most `size` keys; beyond that it forgets those that have used least.

    So keys that an attacker invents displace each other, and other keys do not free one from its limit.
    """

    def __init__(self, policy: RatePolicy, size: int = 10_000) -> None:
        self.policy = policy
        self._interval = policy.window / policy.quota
        self._burst = policy.window + _EPSILON
        self._longest = 2 * policy.window - self._interval
        self._size = size
        self._full_at: dict[Hashable, float] = {}
        self._unshared: dict[Hashable, int] | None = None

    def share_usage(self) -> None:
        """Keep what each key uses for `collect_usage`, which has to be called about once a second from now on."""
        self._unshared = {}

    def collect_usage(self, now: float, most: int) -> dict[Hashable, int]:
        """Return the units that keys used since they were last returned, of the `most` keys that have used most.

        Keys that have used almost nothing of their quota are not returned yet; those whose quota is full again never.
        """
        unshared = self._unshared or {}
        used = {key: full_at for key in unshared if (full_at := self._full_at.get(key, now)) > now}
        floor = now + _SHARED_PART * self.policy.window
        found = nlargest(most, (key for key, full_at in used.items() if full_at >= floor), key=used.__getitem__)
        collected = {key: unshared[key] for key in found}
        self._unshared = {key: unshared[key] for key in used if key not in collected}
        return collected

    def take(self, key: Hashable, now: float) -> float:
        """Use one unit; return the seconds until the quota is full again. Raises RateLimitExceeded."""
        full_at = self._full_at.get(key, now)
        full_in = (full_at - now if full_at > now else 0.0) + self._interval
        if full_in > self._burst:
            raise RateLimitExceeded(self.policy, full_in - self.policy.window)
        self._full_at[key] = now + full_in
        if self._unshared is not None:
            self._unshared[key] = self._unshared.get(key, 0) + 1
        if len(self._full_at) > self._size:
            self._forget_least_used(now)
        return full_in

    def check(self, key: Hashable, now: float) -> float:
        """Return the seconds until the quota is full again. Raises RateLimitExceeded unless there is a unit."""
        full_at = self._full_at.get(key, now)
        full_in = full_at - now if full_at > now else 0.0
        if full_in + self._interval > self._burst:
            raise RateLimitExceeded(self.policy, full_in + self._interval - self.policy.window)
        return full_in

    def charge(self, key: Hashable, units: int, now: float) -> None:
        """Use units whether or not there are as many; the next one is then at most one window away."""
        if self._unshared is not None:
            self._unshared[key] = self._unshared.get(key, 0) + units
        self.charge_shared(key, units, now)

    def charge_shared(self, key: Hashable, units: int, now: float) -> None:
        """Use units that another server admitted."""
        full_at = self._full_at.get(key, now)
        full_in = (full_at - now if full_at > now else 0.0) + units * self._interval
        self._full_at[key] = now + (min(self._longest, full_in))
        if len(self._full_at) > self._size:
            self._forget_least_used(now)

    def count_remaining(self, full_in: float) -> int:
        """Return the units that are left to an admitted key whose quota is full again in so many seconds."""
        return int((self._burst - full_in) / self._interval)

    def _forget_least_used(self, now: float) -> None:
        used = [item for item in self._full_at.items() if item[1] > now]
        used.sort(key=itemgetter(1), reverse=True)
        self._full_at = dict(used[: self._size // 2])
        if self._unshared is not None:
            self._unshared = {key: units for key, units in self._unshared.items() if key in self._full_at}
