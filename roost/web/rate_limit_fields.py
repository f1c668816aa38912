"""Response fields that tell a client its rate limit, and what a request counts on it.

`RateLimit-Limit`, `-Remaining` and `-Reset` (seconds) are what clients read today; `RateLimit` and `RateLimit-Policy`
are what draft-ietf-httpapi-ratelimit-headers has in their place since its seventh version.
"""

import math
from collections.abc import Mapping, Sequence

from starlette.types import Scope

from roost.core.rate_limit import RateLimiter, RateLimitExceeded, RatePolicy

FIELD_NAMES = ("RateLimit", "RateLimit-Policy", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")


class RateLimitFields:
    """Header lines of the responses to requests that these limiters count; the state is that of the first one."""

    def __init__(self, limiters: Sequence[RateLimiter]) -> None:
        self._limiter = limiters[0]
        self._lines = _create_lines([limiter.policy for limiter in limiters])

    def format_lines(self, full_in: float) -> bytes:
        """Return the lines for a key whose quota is full again in so many seconds."""
        remaining, reset = self._limiter.count_remaining(full_in), math.ceil(full_in)
        return self._lines % (remaining, reset, remaining, reset)


def exceeded_headers(problem: RateLimitExceeded) -> Mapping[str, str]:
    """Return the fields of a 429; nothing remains for as long as `Retry-After` says."""
    wait = math.ceil(problem.retry_after or 0.0)
    lines = _create_lines([problem.policy]) % (0, wait, 0, wait)
    return {name.decode(): value.decode() for name, value in parse_lines(lines)}


def charge_requests(scope: Scope, count: int) -> None:
    """Count a request as `count` more on the limit of its caller, because it asks for as many things at once."""
    if (charge := scope["state"].get("charge_requests")) is not None:
        charge(count)


def parse_lines(lines: bytes) -> list[tuple[bytes, bytes]]:
    return [(name, value) for name, _, value in (line.partition(b": ") for line in lines.splitlines())]


def _create_lines(policies: Sequence[RatePolicy]) -> bytes:
    """Return the lines with four gaps: what remains and the seconds to the reset, twice."""
    name, quota = policies[0].name, policies[0].quota
    return (
        f"ratelimit-policy: {', '.join(map(_describe_policy, policies))}\r\n"
        f'ratelimit: "{name}";r=%d;t=%d\r\n'
        f"ratelimit-limit: {quota}\r\nratelimit-remaining: %d\r\nratelimit-reset: %d\r\n"
    ).encode()


def _describe_policy(policy: RatePolicy) -> str:
    unit = ';qu="content-bytes"' if "bytes" in policy.name else ""
    return f'"{policy.name}";q={policy.quota};w={policy.window}{unit}'
