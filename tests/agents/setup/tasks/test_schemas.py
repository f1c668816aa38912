"""Shapes of tasks: input is passed on unchanged, output has both names that clients know."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from roost.agents.setup.tasks import schemas
from roost.drivers.engine.abilities.tasks import (
    CronSchedule,
    IntervalSchedule,
    OneTimeSchedule,
    Schedule,
    Task,
    TaskDelivery,
    TaskPayload,
    TaskRun,
)

AT = datetime(2026, 11, 21, 10, 29, 47, 355000, tzinfo=UTC)
TOLD = "2026-11-21T10:29:47.355000Z"
TURN = TaskPayload("agentTurn", "Write.", "m", "low", 60)
TASK = Task(
    id="j",
    name="report",
    description=None,
    enabled=True,
    running=False,
    schedule=CronSchedule("0 9 * * *", "Europe/Berlin"),
    payload=TURN,
    delivery=TaskDelivery("announce", "telegram", "1", best_effort=True),
    session_target="isolated",
    wake_mode="now",
    created_at=AT,
    next_run_at=AT,
    last_run_at=None,
    last_status=None,
    last_error=None,
)


def gateway_json(task: Task) -> dict[str, Any]:
    return schemas.task_record(task).model_dump(mode="json", by_alias=True)


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({"name": "n"}, {"name": "n"}),
        ({"sessionTarget": "main", "wakeMode": "now"}, {"session_target": "main", "wake_mode": "now"}),
        ({"session_target": "main"}, {"session_target": "main"}),
        ({"schedule": "@daily"}, {"schedule": "@daily"}),
        ({"schedule": {"kind": "every", "everyMs": 60000}}, {"schedule": {"kind": "every", "every_ms": 60000}}),
        ({"payload": {"timeoutSeconds": 5, "model": "m"}}, {"payload": {"timeout_seconds": 5, "model": "m"}}),
        ({"delivery": {"bestEffort": True}}, {"delivery": {"best_effort": True}}),
        (
            {"name": 7, "enabled": "x", "payload": []},
            {"name": 7, "enabled": "x", "payload": []},
        ),  # the model validates it
    ],
)
def test_only_sent_fields_are_set(body: dict[str, Any], fields: dict[str, Any]) -> None:
    names = ("name", "description", "enabled", "schedule", "payload", "delivery", "session_target", "wake_mode")
    assert schemas.TaskRequest.model_validate(body).to_fields() == {**dict.fromkeys(names), **fields}


def test_how_a_task_is_told() -> None:
    assert gateway_json(TASK) == {
        "id": "j",
        "jobId": "j",
        "name": "report",
        "description": None,
        "enabled": True,
        "running": False,
        "schedule": {
            "kind": "cron",
            "at": None,
            "everyMs": None,
            "expr": "0 9 * * *",
            "tz": "Europe/Berlin",
            "staggerMs": 0,
        },
        "payload": {
            "kind": "agentTurn",
            "message": "Write.",
            "text": None,
            "model": "m",
            "thinking": "low",
            "timeoutSeconds": 60,
        },
        "delivery": {"mode": "announce", "channel": "telegram", "to": "1", "bestEffort": True},
        "sessionTarget": "isolated",
        "wakeMode": "now",
        "createdAt": TOLD,
        "nextRunAt": TOLD,
        "lastRunAt": None,
        "lastStatus": None,
        "lastError": None,
    }


@pytest.mark.parametrize(
    ("schedule", "shown"),
    [
        (OneTimeSchedule(AT), {"kind": "at", "at": TOLD}),
        (IntervalSchedule(60_000), {"kind": "every", "everyMs": 60_000}),
        (CronSchedule("* * * * *", stagger_ms=5), {"kind": "cron", "expr": "* * * * *", "tz": "UTC", "staggerMs": 5}),
    ],
)
def test_every_schedule_is_shown(schedule: Schedule, shown: dict[str, Any]) -> None:
    found = gateway_json(replace(TASK, schedule=schedule))["schedule"]
    assert {name: value for name, value in found.items() if value is not None} == shown


def test_a_system_event_has_a_text() -> None:
    found = gateway_json(replace(TASK, payload=TaskPayload("systemEvent", "Wake up.")))["payload"]
    assert (found["message"], found["text"]) == (None, "Wake up.")


def test_tasks_of_the_agent_itself_have_null_fields() -> None:
    found = gateway_json(replace(TASK, schedule=None, payload=None, created_at=None))
    assert [found[name] for name in ("schedule", "payload", "createdAt")] == [None] * 3


def test_a_change_names_its_task_and_a_run_has_its_fields() -> None:
    assert schemas.task_change_response(TASK).job_id == "j"
    run = schemas.TaskRunRecord(**vars(TaskRun("r", "ok", AT, 5, "fine", None)))
    assert run.model_dump(mode="json", by_alias=True) == {
        "id": "r",
        "status": "ok",
        "startedAt": TOLD,
        "durationMs": 5,
        "summary": "fine",
        "error": None,
    }
