"""`roost tasks`: what is asked of the server, what is shown of its answer, and how the command ends."""

import json
from typing import Any

import pytest

from tests.cli.terminal import FakeServer

TASKS = "/v0/agents/a1/tasks"
TASK: dict[str, Any] = {
    "id": "t1",
    "jobId": "t1",
    "name": "report",
    "enabled": True,
    "schedule": {"kind": "cron", "expr": "0 9 * * 1-5", "tz": "Europe/Berlin", "staggerMs": 0},
    "payload": {"kind": "agentTurn", "message": "Write."},
    "nextRunAt": "2026-01-02T08:00:00.000000Z",
    "lastRunAt": None,
    "lastStatus": None,
}
RUN = {"id": "r1", "status": "ok", "startedAt": "2026-01-02T08:00:01.5Z", "durationMs": 5, "summary": "a\x1b[31mb"}


@pytest.fixture
def ada(server: FakeServer) -> FakeServer:
    server.answers["GET /v0/agents"] = (200, {"agents": [{"agentId": "a1", "name": "Ada"}]})
    server.answers[f"GET {TASKS}"] = (200, {"tasks": [TASK, {**TASK, "id": "t2", "jobId": "t2", "name": "x"}]})
    for verb in (f"GET {TASKS}/t1", f"PUT {TASKS}/t1", f"POST {TASKS}/t1/toggle"):
        server.answers[verb] = (200, {"task": {**TASK, "enabled": False}})
    server.answers[f"POST {TASKS}"] = (201, {"task": TASK})
    server.answers[f"DELETE {TASKS}/t1"] = (200, {"message": "Task deleted"})
    server.answers[f"POST {TASKS}/t1/run"] = (200, {"message": "Task started"})
    server.answers[f"GET {TASKS}/t1/runs?limit=20"] = (200, {"runs": [RUN]})
    return server


def test_list_shows_each_task(ada: FakeServer) -> None:
    head, row, _ = ada.run("tasks", "list", "Ada").stdout.splitlines()
    assert head.split()[:3] == ["JOB", "ID", "NAME"]
    assert row.split() == ["t1", "report", "0", "9", "*", "*", "1-5", "Europe/Berlin", "true", "2026-01-02", "08:00"]
    assert json.loads(ada.run("tasks", "list", "a1", "-o", "json").stdout)[0] == TASK


def test_every_kind_of_schedule_is_told(ada: FakeServer) -> None:
    kinds: list[Any] = [{"kind": "every", "everyMs": 90_000}, {"kind": "at", "at": "2026-05-06T07:08:09.0Z"}, None]
    ada.answers[f"GET {TASKS}"] = (200, {"tasks": [{**TASK, "schedule": kind} for kind in kinds]})
    _, *rows = ada.run("tasks", "list", "a1").stdout.splitlines()
    for row, told in zip(rows, ("every 1.5m", "2026-05-06 07:08", "defined by the agent"), strict=True):
        assert told in row


def test_create_asks_for_what_was_given(ada: FakeServer) -> None:
    assert ada.run("tasks", "create", "Ada", "report", "@daily", "Write.", "--off", "--timeout", "9").exit_code == 0
    turn = {"kind": "agentTurn", "message": "Write.", "timeoutSeconds": 9}
    assert ada.bodies(f"POST {TASKS}") == [{"name": "report", "schedule": "@daily", "payload": turn, "enabled": False}]


def test_update_asks_for_what_was_given(ada: FakeServer) -> None:
    assert ada.run("tasks", "update", "Ada", "report", "--schedule", "every 1h").exit_code == 0
    assert ada.bodies(f"PUT {TASKS}/t1") == [{"schedule": "every 1h"}]
    assert ada.run("tasks", "update", "Ada", "report", "--model", "m").exit_code == 2


def test_toggle_says_it_or_flips(ada: FakeServer) -> None:
    for flags in ((), ("--on",), ("--off",)):
        assert ada.run("tasks", "toggle", "Ada", "report", *flags).stdout == "report is off\n"
    assert ada.bodies(f"POST {TASKS}/t1/toggle")[-2:] == [{"enabled": True}, {"enabled": False}]


def test_tasks_are_shown_run_toggled_and_deleted(ada: FakeServer) -> None:
    assert "Write." in ada.run("tasks", "show", "Ada", "t1").stdout
    assert ada.run("tasks", "run", "Ada", "report").stdout == "Task started\n"
    assert ada.run("tasks", "delete", "Ada", "report", "--yes").stdout == "Task deleted\n"
    runs = ada.run("tasks", "runs", "Ada", "report").stdout
    assert "\x1b" not in runs
    assert "ok" in runs


def test_a_task_that_is_not_there_or_has_a_twin(ada: FakeServer) -> None:
    assert ada.run("tasks", "run", "Ada", "nothing").exit_code == 5
    ada.answers[f"GET {TASKS}"] = (200, {"tasks": [TASK, {**TASK, "id": "t2"}]})
    assert ada.run("tasks", "run", "Ada", "report").exit_code == 2
    assert ada.run("tasks", "run", "Ada", "t1").exit_code == 0
    ada.answers[f"POST {TASKS}/t1/run"] = (409, {"error": "Task is running"})
    refused = ada.run("tasks", "run", "Ada", "t1")
    assert (refused.exit_code, refused.stderr) == (1, "Error: Task is running\n")
