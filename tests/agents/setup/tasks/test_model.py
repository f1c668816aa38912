"""Validation of new and changed tasks."""

from typing import Any

import pytest

from roost.agents.setup.tasks import model
from roost.agents.setup.tasks.model import InvalidTaskParameters, TaskNotFound
from roost.drivers.engine.abilities.tasks import IntervalSchedule, TaskChange, TaskDelivery, TaskPayload

GOOD: dict[str, Any] = {"name": "n", "schedule": "every 1h", "payload": "do it"}


def test_the_least_of_a_task() -> None:
    spec = model.parse_new_task(GOOD)
    assert (spec.name, spec.schedule, spec.payload) == (
        "n",
        IntervalSchedule(3_600_000),
        TaskPayload("agentTurn", "do it"),
    )
    assert (spec.enabled, spec.delivery, spec.session_target, spec.wake_mode) == (
        True,
        TaskDelivery(),
        "isolated",
        "now",
    )


def test_all_of_a_task() -> None:
    turn = {"kind": "agentTurn", "message": " do it ", "model": "m", "thinking": "low", "timeout_seconds": 5}
    delivery = {"mode": "announce", "channel": "telegram", "to": "1", "best_effort": True}
    rest = {"description": "d", "enabled": False, "session_target": "isolated", "wake_mode": "next-heartbeat"}
    spec = model.parse_new_task({**GOOD, "payload": turn, "delivery": delivery, **rest})
    assert spec.payload == TaskPayload("agentTurn", "do it", "m", "low", 5)
    assert spec.delivery == TaskDelivery("announce", "telegram", "1", best_effort=True)
    assert (spec.description, spec.enabled, spec.wake_mode) == ("d", False, "next-heartbeat")


def test_an_event_goes_to_the_main_session() -> None:
    spec = model.parse_new_task({**GOOD, "payload": {"kind": "systemEvent", "text": "wake up"}})
    assert (spec.payload, spec.session_target) == (TaskPayload("systemEvent", "wake up"), "main")


def test_a_change_says_nothing_of_the_rest() -> None:
    assert model.parse_task_change({}) == TaskChange()
    assert model.parse_task_change({"enabled": False, "name": None}) == TaskChange(enabled=False)
    turned = model.parse_task_change({"payload": {"kind": "systemEvent", "text": "x"}})
    assert turned == TaskChange(payload=TaskPayload("systemEvent", "x"), session_target="main")


@pytest.mark.parametrize(
    ("changes", "detail"),
    [
        ({"name": None}, "name: is required"),
        ({"name": 7}, "name: must be text of 1 to 100 characters"),
        ({"schedule": "*/0 * * * *"}, "schedule: the minute"),
        ({"enabled": "yes"}, "enabled: must be true or false"),
        ({"session_target": "both"}, "sessionTarget: must be main or isolated"),
        ({"payload": {"kind": "x"}}, "payload.kind: must be agentTurn or systemEvent"),
        ({"payload": {"message": ""}}, "payload.message: must be text"),
        ({"payload": {"message": "x", "timeout_seconds": 0}}, "payload.timeoutSeconds: must be from 1"),
        ({"delivery": {"mode": "webhook"}}, "delivery.to: must be a URL"),
        ({"delivery": {"best_effort": 1}}, "delivery.bestEffort: must be true or false"),
        ({"delivery": "x"}, "delivery: must be an object"),
    ],
)
def test_a_refusal_names_the_field(changes: dict[str, Any], detail: str) -> None:
    with pytest.raises(InvalidTaskParameters) as refused:
        model.parse_new_task({**GOOD, **changes})
    assert (refused.value.detail or "").startswith(detail)


@pytest.mark.parametrize("field", ["name", "schedule", "payload"])
def test_required_fields_must_not_be_empty(field: str) -> None:
    for empty in (None, "", {}, [], 0, False):
        with pytest.raises(InvalidTaskParameters):
            model.parse_new_task({**GOOD, field: empty})


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "x" * 101},
        {"name": "\ud800"},
        {"description": 5},
        {"enabled": 1},
        {"payload": {"kind": "agentTurn", "text": "x"}},
        {"payload": {"message": "x", "timeout_seconds": True}},
        {"payload": {"message": "x", "timeout_seconds": 1e9}},
        {"delivery": "none"},
        {"delivery": {"mode": "webhook", "to": "ftp://x"}},
        {"delivery": {"mode": ["none"]}},
        {"session_target": "main"},
        {"session_target": ["isolated"]},
        {"wake_mode": {}},
    ],
    ids=str,
)
def test_malformed_tasks_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidTaskParameters):
        model.parse_new_task({**GOOD, **wrong})


@pytest.mark.parametrize("task_id", ["", "a/b", "..", "x" * 65, "a b", "ä", "a?b"])
def test_malformed_task_id_is_not_found(task_id: str) -> None:
    with pytest.raises(TaskNotFound):
        model.validate_task_id(task_id)
