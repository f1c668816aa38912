"""The JSON form of tasks: round trips, and values that an agent wrote."""

from datetime import UTC, datetime
from typing import Any

import pytest

from roost.drivers.engine import task_json
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
def test_a_task_survives_a_round_trip(schedule: Schedule, payload: TaskPayload, delivery: TaskDelivery) -> None:
    fields = task_json.serialize_task(TaskSpec("n", schedule, payload, delivery=delivery))
    assert task_json.parse_schedule(fields["schedule"]) == schedule
    assert task_json.parse_payload(fields["payload"]) == payload
    assert task_json.parse_delivery(fields["delivery"]) == delivery


def test_a_change_has_only_the_given_fields() -> None:
    assert task_json.serialize_task(TaskChange(enabled=False)) == {"enabled": False}
    assert task_json.serialize_task(TaskChange()) == {}


@pytest.mark.parametrize("found", HOSTILE, ids=str)
def test_garbage_is_not_a_schedule(found: object) -> None:
    assert task_json.parse_schedule(found) is None


def test_garbage_is_ignored_and_long_texts_are_cut() -> None:
    assert task_json.parse_payload({"kind": "agentTurn", "message": 5}) is None
    assert task_json.parse_payload({"kind": "command", "argv": ["id"]}) is None
    assert task_json.parse_delivery({"mode": {}}) == TaskDelivery()
    assert task_json.parse_objects({"a": 1}) == []
    assert task_json.parse_objects([1, {"a": 1}]) == [{}, {"a": 1}]
    assert len(task_json.parse_text("x" * 100_000) or "") == 32_000
    assert task_json.parse_text("a\x1b[31mb\x07") == "ab\N{REPLACEMENT CHARACTER}"
    assert [task_json.parse_number(found) for found in (True, "1", -1, 1e300, float("nan"), float("inf"), 2)] == [
        None
    ] * 6 + [2]
    assert task_json.parse_milliseconds(1e18) is None
    assert task_json.parse_milliseconds(0) == datetime(1970, 1, 1, tzinfo=UTC)
    assert task_json.parse_iso_time("2026-01-02T03:04:05") == PAST.at


def test_an_expired_one_time_task_cannot_be_enabled() -> None:
    task_json.check_time_left(PAST, TaskChange(name="x"))
    task_json.check_time_left(PAST, TaskChange(enabled=True, schedule=IntervalSchedule(60_000)))
    with pytest.raises(EngineTaskRefused):
        task_json.check_time_left(PAST, TaskChange(enabled=True))
    with pytest.raises(EngineTaskRefused):
        task_json.check_time_left(IntervalSchedule(60_000), TaskChange(enabled=True, schedule=PAST))
