from contextlib import ExitStack

import pytest

from roost.agents.models.gateway.concurrency import ConcurrencyLimiter
from roost.agents.models.gateway.errors import TooManyModelRequests


def test_one_owner_has_only_so_many_requests_running() -> None:
    slots = ConcurrencyLimiter(requests=2)
    with ExitStack() as held:
        held.enter_context(slots.acquire("a"))
        held.enter_context(slots.acquire("a"))
        with pytest.raises(TooManyModelRequests) as refused, slots.acquire("a"):
            pass
        assert refused.value.retry_after == 1
        with slots.acquire("b"):
            pass
    with slots.acquire("a"), slots.acquire("a"):
        pass


def test_one_owner_has_only_so_many_bytes_in_hand() -> None:
    slots = ConcurrencyLimiter(size=10)
    with slots.acquire("a") as one, slots.acquire("a") as two, slots.acquire("b") as other:
        one.reserve(6)
        two.reserve(4)
        with pytest.raises(TooManyModelRequests):
            two.reserve(1)
        other.reserve(10)
    with slots.acquire("a") as one:
        one.reserve(10)


def test_a_request_that_fails_gives_its_slot_back() -> None:
    slots = ConcurrencyLimiter(requests=1, size=10)

    def fail() -> None:
        with slots.acquire("a") as slot:
            slot.reserve(10)
            raise RuntimeError

    for _ in range(3):
        with pytest.raises(RuntimeError):
            fail()


def test_nothing_is_kept_of_owners_who_have_nothing_running() -> None:
    slots = ConcurrencyLimiter()
    for number in range(100):
        with slots.acquire(str(number)) as slot:
            slot.reserve(1)
    assert slots.running_requests == {}
