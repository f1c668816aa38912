"""The written form of tasks: there and back, and what stands there when an agent has been at it."""

from datetime import UTC, datetime
from typing import Any

import pytest

from roost.drivers.engine import task_json as form
from roost.drivers.engine.abilities.tasks import (
    CronSchedule,
    EngineTaskRefused,
    IntervalSchedule,
    OneTimeSchedule,
    Schedule,
    TaskChange,
    TaskDelivery,
    TaskPayload,
    TaskSpec,
)

PAST = OneTimeSchedule(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
HOSTILE: list[Any] = [
    *(None, [], "at", 5, {}, {"kind": []}, {"kind": "at"}, {"kind": "at", "at": "soon"}, {"kind": "at", "at": {}}),
    *({"kind": "every", "everyMs": "1"}, {"kind": "every", "everyMs": 1e30}, {"kind": "every", "everyMs": -1}),
    *({"kind": "cron"}, {"kind": "cron", "expr": 5}, {"kind": "at", "at": "9999-12-31T23:59:59-23:59"}),
]


@pytest.mark.parametrize("schedule", [PAST, IntervalSchedule(90_000), CronSchedule("0 9 * * *", "Asia/Tokyo", 5)])
@pytest.mark.parametrize("payload", [TaskPayload("agentTurn", "a", "m", "low", 7), TaskPayload("systemEvent", "b")])
@pytest.mark.parametrize("delivery", [TaskDelivery(), TaskDelivery("announce", "slack", "C1", best_effort=True)])
def test_there_and_back(schedule: Schedule, payload: TaskPayload, delivery: TaskDelivery) -> None:
    written = form.written(TaskSpec("n", schedule, payload, delivery=delivery))
    assert form.schedule(written["schedule"]) == schedule
    assert form.payload(written["payload"]) == payload
    assert form.delivery(written["delivery"]) == delivery


def test_a_change_has_what_is_given_only() -> None:
    assert form.written(TaskChange(enabled=False)) == {"enabled": False}
    assert form.written(TaskChange()) == {}


@pytest.mark.parametrize("found", HOSTILE, ids=str)
def test_nonsense_is_no_schedule(found: object) -> None:
    assert form.schedule(found) is None


def test_nonsense_is_skipped_and_what_is_long_is_cut() -> None:
    assert form.payload({"kind": "agentTurn", "message": 5}) is None
    assert form.payload({"kind": "command", "argv": ["id"]}) is None
    assert form.delivery({"mode": {}}) == TaskDelivery()
    assert form.items({"a": 1}) == []
    assert form.items([1, {"a": 1}]) == [{}, {"a": 1}]
    assert len(form.text("x" * 100_000) or "") == 32_000
    assert form.text("a\x1b[31mb\x07") == "ab\N{REPLACEMENT CHARACTER}"
    assert [form.number(found) for found in (True, "1", -1, 1e300, float("nan"), float("inf"), 2)] == [None] * 6 + [2]
    assert form.moment(1e18) is None
    assert form.moment(0) == datetime(1970, 1, 1, tzinfo=UTC)
    assert form.iso("2026-01-02T03:04:05") == PAST.at


def test_what_had_its_time_is_not_turned_on() -> None:
    form.check_time_left(PAST, TaskChange(name="x"))
    form.check_time_left(PAST, TaskChange(enabled=True, schedule=IntervalSchedule(60_000)))
    with pytest.raises(EngineTaskRefused):
        form.check_time_left(PAST, TaskChange(enabled=True))
    with pytest.raises(EngineTaskRefused):
        form.check_time_left(IntervalSchedule(60_000), TaskChange(enabled=True, schedule=PAST))
