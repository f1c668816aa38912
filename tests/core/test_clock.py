from datetime import UTC, datetime, timedelta, timezone

from roost.core import clock


def test_now_is_aware_and_in_utc() -> None:
    before = datetime.now(UTC)
    assert before <= clock.utc_now() <= datetime.now(UTC)
    assert clock.utc_now().utcoffset() == timedelta(0)


def test_monotonic_never_goes_back() -> None:
    moments = [clock.monotonic_seconds() for _ in range(1000)]
    assert moments == sorted(moments)


def test_iso_is_utc_with_fraction_and_z() -> None:
    east = timezone(timedelta(hours=2))
    assert clock.format_iso(datetime(2026, 1, 2, 1, 4, 5, 6, tzinfo=east)) == "2026-01-01T23:04:05.000006Z"
    assert clock.format_iso(datetime(2026, 1, 2, tzinfo=UTC)) == "2026-01-02T00:00:00.000000Z"
