"""The times at which the fake engine's scheduler runs a task."""

from datetime import UTC, datetime

from roost.drivers.engine.fake.scheduler import next_time

SECOND = int(datetime(2030, 1, 1, tzinfo=UTC).timestamp())
AT = {"kind": "at", "at": "2030-01-01T00:00:00.000400+00:00"}


def test_a_one_time_task_is_planned_in_whole_milliseconds() -> None:
    assert next_time(AT, SECOND - 0.001) == SECOND * 1000


def test_a_one_time_task_has_no_next_time_within_its_own_millisecond() -> None:
    """Its scheduler ran it at the first 0.4 ms of it, asked for the next time, and would run it again."""
    assert next_time(AT, SECOND + 0.0001) is None
    assert next_time(AT, SECOND + 0.001) is None
