from datetime import timedelta

from roost.work.model import backoff


def test_pauses_double_from_a_second_to_five_minutes() -> None:
    assert [backoff(failures).total_seconds() for failures in (1, 2, 3, 9, 10, 10_000)] == [1, 2, 4, 256, 300, 300]
    assert backoff(1) == timedelta(seconds=1)
