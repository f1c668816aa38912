from datetime import timedelta

from roost.work.model import retry_delay


def test_pauses_double_from_a_second_to_five_minutes() -> None:
    assert [retry_delay(failures).total_seconds() for failures in (1, 2, 3, 9, 10, 10_000)] == [1, 2, 4, 256, 300, 300]
    assert retry_delay(1) == timedelta(seconds=1)
