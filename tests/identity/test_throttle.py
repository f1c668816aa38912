import pytest

from roost.core import clock
from roost.identity.errors import TooManyAttempts
from roost.identity.throttle import FailedLoginThrottle


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return a list with the current seconds of the clock, for tests to set."""
    seconds = [1000.0]
    monkeypatch.setattr(clock, "monotonic_seconds", lambda: seconds[0])
    return seconds


def refused(throttle: FailedLoginThrottle, client: str | None = "a") -> float | None:
    """Return the seconds until the client may try again, if it is refused."""
    try:
        throttle.record_failure(client)
    except TooManyAttempts as error:
        return error.retry_after
    return None


@pytest.mark.usefixtures("now")
def test_one_client_has_so_many_attempts() -> None:
    throttle = FailedLoginThrottle(attempts=3)
    assert [refused(throttle) for _ in range(3)] == [None] * 3
    assert refused(throttle) == pytest.approx(20.0)
    assert refused(throttle, "b") is None


@pytest.mark.usefixtures("now")
def test_a_client_without_limits_has_any_number_and_so_has_everybody_without_a_limit() -> None:
    throttle, unlimited = FailedLoginThrottle(attempts=1), FailedLoginThrottle(None)
    assert [refused(throttle, None) for _ in range(5)] == [refused(unlimited) for _ in range(5)] == [None] * 5


def test_a_minute_later_it_may_try_again(now: list[float]) -> None:
    throttle = FailedLoginThrottle(attempts=1)
    refused(throttle)
    now[0] += 59
    assert refused(throttle) == pytest.approx(1.0)
    now[0] += 2
    assert refused(throttle) is None
    assert refused(throttle) == pytest.approx(60.0)


def test_attempts_while_refused_do_not_make_it_longer(now: list[float]) -> None:
    throttle = FailedLoginThrottle(attempts=1)
    refused(throttle)
    for _ in range(50):
        now[0] += 1
        assert refused(throttle) is not None
    now[0] += 11
    assert refused(throttle) is None
