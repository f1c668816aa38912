"""The algorithm, on a clock of its own: `now` is an argument."""

import contextlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.core.rate_limit import RateLimiter, RateLimitExceeded, RatePolicy

NOW = 1e6


def limiter(quota: int = 3, window: int = 60, size: int = 100) -> RateLimiter:
    return RateLimiter(RatePolicy("requests", "requests", quota, window), size)


def wait_for(attempt: Callable[[], float]) -> float:
    """Return the seconds that a refusal names."""
    with pytest.raises(RateLimitExceeded) as refusal:
        attempt()
    assert refusal.value.retry_after is not None
    return refusal.value.retry_after


def test_a_quota_may_be_used_at_once_and_refills_evenly() -> None:
    limit = limiter(quota=3)
    states = [limit.take("a", NOW) for _ in range(3)]
    assert states == pytest.approx([20, 40, 60])
    assert [limit.count_remaining(state) for state in states] == [2, 1, 0]
    assert wait_for(lambda: limit.take("a", NOW)) == pytest.approx(20)
    assert wait_for(lambda: limit.take("a", NOW + 19)) == pytest.approx(1)
    assert limit.take("a", NOW + 20) == pytest.approx(60)
    assert wait_for(lambda: limit.take("a", NOW + 20)) == pytest.approx(20)
    assert limit.take("b", NOW) == pytest.approx(20)
    assert limit.count_remaining(limit.take("a", NOW + 1000)) == 2


def test_a_refusal_says_what_the_limit_is() -> None:
    limit = limiter(quota=1)
    limit.take("a", NOW)
    with pytest.raises(RateLimitExceeded, match="Too many requests: the limit is 1 in 60 seconds"):
        limit.take("a", NOW)


def test_refused_attempts_cost_nothing() -> None:
    limit = limiter(quota=1)
    limit.take("a", NOW)
    for second in range(60):
        wait_for(lambda second=second: limit.take("a", NOW + second))
    assert limit.take("a", NOW + 60) == pytest.approx(60)


def test_charges_are_paid_back_within_a_window() -> None:
    limit = limiter(quota=60)
    assert limit.check("a", NOW) == 0.0
    limit.charge("a", 59, NOW)
    assert limit.check("a", NOW) == pytest.approx(59)
    limit.charge("a", 1, NOW)
    assert wait_for(lambda: limit.check("a", NOW)) == pytest.approx(1)
    limit.charge("a", 10**12, NOW)
    assert wait_for(lambda: limit.check("a", NOW)) == pytest.approx(60)
    assert limit.check("a", NOW + 60) == pytest.approx(59)


def test_a_million_keys_need_no_more_memory_and_free_nobody_from_a_limit() -> None:
    limit = limiter(quota=10, size=1000)
    for _ in range(10):
        limit.take("busy", NOW)
    for number in range(1_000_000):
        limit.take(number, NOW)
    assert len(limit._full_at) <= 1000
    assert wait_for(lambda: limit.take("busy", NOW)) == pytest.approx(6)
    limit.take("last", NOW + 1000)


@given(st.integers(1, 1000), st.integers(1, 100), st.lists(st.floats(0, 5), max_size=200))
def test_never_more_than_the_quota_and_its_refill(quota: int, window: int, pauses: list[float]) -> None:
    limit, now, taken = limiter(quota, window), NOW, 0
    for pause in pauses:
        now += pause
        with contextlib.suppress(RateLimitExceeded):
            assert 0 < limit.take("a", now) <= window + 1e-3
            taken += 1
        assert taken <= quota + (now - NOW) * quota / window + 1e-3
