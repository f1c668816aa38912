"""Formats of schedules."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from roost.agents.setup.tasks.schedules import InvalidSchedule, parse_schedule
from roost.core import clock
from roost.drivers.engine.abilities.tasks import CronSchedule, IntervalSchedule, OneTimeSchedule

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _at_noon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "utc_now", lambda: NOW)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("0 9 * * 1-5", CronSchedule("0 9 * * 1-5")),
        ("  0   9 * *  MON-FRI ", CronSchedule("0 9 * * MON-FRI")),
        ("0 9 * * * Europe/Berlin", CronSchedule("0 9 * * *", "Europe/Berlin")),
        ("0 9 * * * UTC", CronSchedule("0 9 * * *")),
        ("0 9 29 2 *", CronSchedule("0 9 29 2 *")),
        ("@hourly", CronSchedule("0 * * * *")),
        ("@Weekly America/New_York", CronSchedule("0 0 * * 0", "America/New_York")),
        ("every 10m", IntervalSchedule(600_000)),
        ("Every hour", IntervalSchedule(3_600_000)),
        ("every 90 seconds", IntervalSchedule(90_000)),
        ("every 2 weeks", IntervalSchedule(1_209_600_000)),
        ("2026-03-01T12:00:01Z", OneTimeSchedule(NOW + timedelta(seconds=1))),
        ("2026-03-01T13:30", OneTimeSchedule(NOW + timedelta(minutes=90))),
        ("2026-03-01T14:30:00+02:00", OneTimeSchedule(NOW + timedelta(minutes=30))),
        ({"kind": "cron", "expr": "*/5 * * * *", "tz": "Asia/Kolkata"}, CronSchedule("*/5 * * * *", "Asia/Kolkata")),
        ({"kind": "cron", "expr": "0 * * * *", "stagger_ms": 1000}, CronSchedule("0 * * * *", "UTC", 1000)),
        ({"kind": "every", "every_ms": 60_000}, IntervalSchedule(60_000)),
        ({"kind": "at", "at": "2026-04-01T00:00:00Z"}, OneTimeSchedule(datetime(2026, 4, 1, tzinfo=UTC))),
    ],
    ids=str,
)
def test_schedules_are_parsed(said: object, meant: object) -> None:
    assert parse_schedule(said) == meant


@pytest.mark.parametrize(
    "said",
    [
        *("", "now", "30m", "every", "every 59s", "every 1 fortnight", "@reboot", "@every 5m"),
        *(
            "* * * *",
            "* * * * * *",
            "0 * * * * *",
            "* * * * * MON",
            "0 0 31 4 *",
            "0 0 30 feb *",
            "60 * * * *",
            "a b c d e",
        ),
        *("0 9 * * 5L", "0 9 L * *", "0 9 LW * *", "0 9 15W * *", "0 9 * * 1#1", "0 9 * * MON#1", "0 9 ? * *"),
        *("*/0 * * * *", "0 0 30 2 *", "*/100 * * * *", "5- * * * *", "1,,2 * * * *", "mon 9 * * *", "0 9 * * jan"),
        *("5/2 * * * *", "0 9 1/1 * *", "0 9 * * 5/1", "*/61 * * * *", "0 */25 * * *", "0 9 * * */8", "0 9 1 * *,3"),
        *("5-1 * * * *", "0 9 * * MON-SUN", "0 9 * * FRI-MON", "0 9 * * 1-1", "0 9 30 2 MON", "0 9 31 2,4 1"),
        *(f"0 9 * * * {zone}" for zone in ("localtime", "Factory", "posixrules", "right/Europe/Berlin", "posix/UTC")),
        *("0 9 * * * Mars/Base", "0 9 * * * /etc/localtime", "0 9 * * * Europe", "* * * * * " + "x" * 300, "9" * 5000),
        *("2026-03-01T12:00:00Z", "2026-02-28", "2037-01-01", "9999-12-31T23:59:59Z", "2026-02-30", "2026-13-01"),
        *(None, 5, [], {}, {"kind": "cron"}, {"kind": "cron", "expr": "0 9 * * * UTC", "tz": "UTC"}),
        *(
            {"kind": "every", "every_ms": 60_000.5},
            {"kind": "every", "every_ms": 10**15},
            {"kind": "every", "every_ms": "1"},
        ),
        *({"kind": "at"}, {"kind": "at", "at": "x" * 100}, {"kind": ["at"]}),
    ],
    ids=str,
)
def test_impossible_schedules_are_refused(said: object) -> None:
    with pytest.raises(InvalidSchedule) as refused:
        parse_schedule(said)
    assert str(refused.value)


@pytest.mark.parametrize(
    ("said", "allowed"),
    [
        ("0 9 * * 5L", "the day of week '5L' cannot be read: 0 to 7 or sun to sat, *, lists, ranges and steps"),
        ("*/0 * * * *", "the minute '*/0' cannot be read: 0 to 59, *, lists, ranges and steps from 1"),
        ("0 0 30 2 *", "never due"),
        ("0 9 * * MON-SUN", "the day of week 'MON-SUN' cannot be read"),
        ("5/2 * * * *", "n-m ascends, /s follows * or n-m"),
        ("every 5s", "from one minute to ten years"),
        ("tomorrow", "five fields of cron"),
    ],
)
def test_a_refusal_says_what_is_allowed(said: str, allowed: str) -> None:
    with pytest.raises(InvalidSchedule, match=re.escape(allowed)):
        parse_schedule(said)
