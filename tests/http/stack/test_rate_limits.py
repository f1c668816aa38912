import pytest

from roost.core import clock
from roost.core.rate_limit import RateLimitExceeded
from roost.http.stack.rate_limits import RateLimits
from roost.web.rate_limit_fields import parse_lines


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return a list with the current seconds of the clock, for tests to set."""
    seconds = [1000.0]
    monkeypatch.setattr(clock, "monotonic_seconds", lambda: seconds[0])
    return seconds


def policy_of_refusal(limits: RateLimits, caller: str, host: str | None = None) -> str:
    with pytest.raises(RateLimitExceeded) as refusal:
        limits.start_request(caller, host)
    return refusal.value.policy.name


def test_without_limits_there_are_no_fields() -> None:
    usage = RateLimits().start_request("a", "host")
    usage.count_bytes(10**9)
    usage.charge_rest()
    assert usage.header_lines == b""


def test_each_caller_has_its_own_requests() -> None:
    limits = RateLimits(caller_requests=2)
    fields = [dict(parse_lines(limits.start_request("a").header_lines)) for _ in range(2)]
    assert [field[b"ratelimit-remaining"] for field in fields] == [b"1", b"0"]
    assert policy_of_refusal(limits, "a") == "requests"
    limits.start_request("b")


def test_all_callers_share_the_limit_of_a_host() -> None:
    limits = RateLimits(host_requests=2)
    limits.start_request("a", "one")
    limits.start_request("b", "one")
    assert policy_of_refusal(limits, "c", "one") == "host-requests"
    limits.start_request("c", "two")
    limits.start_request("c")


def test_refused_requests_of_a_caller_do_not_use_up_a_host() -> None:
    limits = RateLimits(caller_requests=1, host_requests=2)
    limits.start_request("a", "one")
    for _ in range(5):
        assert policy_of_refusal(limits, "a", "one") == "requests"
    limits.start_request("b", "one")


def test_bytes_count_while_they_flow_and_the_next_request_waits(now: list[float]) -> None:
    limits = RateLimits(caller_bytes=1_000_000, host_bytes=3_000_000)
    usage = limits.start_request("a", "one")
    usage.count_bytes(60_000)
    limits.start_request("a", "one")  # small counts are charged at the end
    usage.count_bytes(940_000)
    assert policy_of_refusal(limits, "a", "one") == "bytes"
    limits.start_request("b", "one")
    usage.count_bytes(2_000_000)
    assert policy_of_refusal(limits, "b", "one") == "host-bytes"
    now[0] += 61
    limits.start_request("a", "one").charge_rest()


def test_the_fields_name_all_limits_that_apply() -> None:
    limits = RateLimits(caller_requests=5, caller_bytes=10, host_requests=7, host_bytes=20)
    by_host = {
        host: dict(parse_lines(limits.start_request("a", host).header_lines))[b"ratelimit-policy"].count(b"q=")
        for host in (None, "one")
    }
    assert by_host == {None: 2, "one": 4}


def test_one_request_counts_as_many_when_it_asks_for_as_many_things() -> None:
    limits = RateLimits(caller_requests=5)
    limits.start_request("a").charge_requests(4)
    assert policy_of_refusal(limits, "a") == "requests"
