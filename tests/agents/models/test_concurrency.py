from contextlib import ExitStack

import pytest

from roost.agents.models.concurrency import ConcurrencyLimiter
from roost.agents.models.errors import TooManyModelRequests


def test_one_owner_has_only_so_many_requests_running() -> None:
    slots = ConcurrencyLimiter(requests=2)
    with ExitStack() as held:
        held.enter_context(slots.taken("a"))
        held.enter_context(slots.taken("a"))
        with pytest.raises(TooManyModelRequests) as refused, slots.taken("a"):
            pass
        assert refused.value.retry_after == 1
        with slots.taken("b"):
            pass
    with slots.taken("a"), slots.taken("a"):
        pass


def test_one_owner_has_only_so_many_bytes_in_hand() -> None:
    slots = ConcurrencyLimiter(size=10)
    with slots.taken("a") as one, slots.taken("a") as two, slots.taken("b") as other:
        one.hold(6)
        two.hold(4)
        with pytest.raises(TooManyModelRequests):
            two.hold(1)
        other.hold(10)
    with slots.taken("a") as one:
        one.hold(10)


def test_a_request_that_fails_gives_its_slot_back() -> None:
    slots = ConcurrencyLimiter(requests=1, size=10)

    def fail() -> None:
        with slots.taken("a") as slot:
            slot.hold(10)
            raise RuntimeError

    for _ in range(3):
        with pytest.raises(RuntimeError):
            fail()


def test_nothing_is_kept_of_owners_who_have_nothing_running() -> None:
    slots = ConcurrencyLimiter()
    for number in range(100):
        with slots.taken(str(number)) as slot:
            slot.hold(1)
    assert slots.running == {}
