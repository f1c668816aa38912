"""The file that is printed: what apply takes, whatever an agent's texts are, without values of secrets."""

from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from roost.cli.fleet.document import parse_fleet, parse_task_record, task_fields
from roost.cli.fleet.live import LiveAgent, LiveTask, dump_yaml, is_expressible, render_fleet
from roost.cli.fleet.plan import plan_tasks
from roost.core.yaml_document import parse_yaml

TASK: dict[str, Any] = {
    "id": "t1",
    "name": "report",
    "schedule": {"kind": "cron", "expr": "0 9 * * 1-5", "tz": "Europe/Berlin", "staggerMs": 0, "at": None},
    "payload": {"kind": "agentTurn", "message": "Write.", "model": None},
    "description": None,
    "enabled": True,
    "delivery": {"mode": "none", "channel": None, "to": None, "bestEffort": False},
    "sessionTarget": "isolated",
    "wakeMode": "now",
}
HOOK = {"mode": "webhook", "to": "https://a.example", "channel": None, "bestEffort": True}
RECORDS = [
    TASK,
    {**TASK, "name": "at", "schedule": {"kind": "at", "at": "2020-01-02T03:04:05.000006Z"}},
    {**TASK, "name": "every", "schedule": {"kind": "every", "everyMs": 90_000}, "enabled": False, "description": "d"},
    {**TASK, "name": "stagger", "schedule": {"kind": "cron", "expr": "* * * * *", "tz": "UTC", "staggerMs": 5}},
    {**TASK, "name": "turn", "payload": {"kind": "agentTurn", "message": "m", "model": "x", "timeoutSeconds": 5}},
    {**TASK, "name": "event", "payload": {"kind": "systemEvent", "text": "t"}, "sessionTarget": "main"},
    {**TASK, "name": "hook", "delivery": HOOK, "wakeMode": "next-heartbeat"},
]
SECRETS: dict[str, Any] = {
    "KEY": {"name": "KEY", "type": "secret", "id": "s1"},
    "LEVEL": {"name": "LEVEL", "type": "variable", "id": "s2", "value": "on"},
    "ODD": {"name": "ODD", "type": "variable", "id": "s3", "value": "${HOME}"},
    "BELL": {"name": "BELL", "type": "variable", "id": "s4", "value": "\x07"},
}


def agent(**fields: Any) -> LiveAgent:
    return LiveAgent(**{"id": "a1", "name": "Ada Lovelace", "engine": "fake", "tasks": [], "channels": {}, **fields})


def test_secrets_and_tokens_become_environment_variables() -> None:
    telegram = {"enabled": True, "dmPolicy": "open", "allowFrom": [], "botTokenHint": "abcd"}
    shown = yaml.safe_load(
        render_fleet([agent(secrets=dict.fromkeys(SECRETS, True), channels={"slack": telegram})], SECRETS)
    )
    assert shown["secrets"] == [
        {"name": "KEY", "value": "${KEY}"},
        {"name": "LEVEL", "type": "variable", "value": "on"},
        {"name": "ODD", "type": "variable", "value": "${ODD}"},
        {"name": "BELL", "type": "variable", "value": "${BELL}"},
    ]
    assert shown["agents"][0]["channels"]["slack"] == {
        "botToken": "${ADA_LOVELACE_SLACK_BOT_TOKEN}",
        "appToken": "${ADA_LOVELACE_SLACK_APP_TOKEN}",
        "enabled": True,
        "dmPolicy": "open",
        "allowFrom": [],
    }


def test_secrets_with_names_that_no_shell_spells() -> None:
    secrets = {
        name: {"name": name, "type": "secret", "id": name} for name in ("a.b", "A_B", "2nd key", "\u00fc", "\u65e5")
    }
    text = render_fleet([agent(secrets=dict.fromkeys(secrets, True))], secrets)
    fleet = parse_fleet(text, "f")
    assert fleet.agents[0].secrets == list(secrets)
    assert [one.value for one in fleet.secrets] == ["${A_B_}", "${A_B}", "${_2ND_KEY}", "${SECRET}", "${SECRET_}"]


def test_every_kind_of_task_comes_back() -> None:
    tasks = [LiveTask(record["name"], record["name"], parse_task_record(record)) for record in RECORDS]
    text = render_fleet([agent(tasks=tasks)], {})
    parsed = parse_fleet(text, "f").agents[0].tasks or ()
    for one, again in zip(tasks, parsed, strict=True):
        assert one.task is not None
        whole, shown = task_fields(one.task), task_fields(again)
        assert {name: whole[name] for name in shown} == shown
    assert "schedule: 0 9 * * 1-5 Europe/Berlin" in text
    assert "schedule: '2020-01-02T03:04:05.000006Z'" in text


def test_fields_that_no_file_can_express_are_left_out() -> None:
    assert parse_task_record({**TASK, "schedule": None}) is None
    assert parse_task_record({**TASK, "schedule": {"kind": "every", "everyMs": 5}}) is None
    odd = parse_task_record({**TASK, "payload": {"kind": "agentTurn", "message": "a\x07b"}})
    text = render_fleet([agent(profile={"description": "a\x1bb", "vibe": "on"}, tasks=[LiveTask("t", "t", odd)])], {})
    assert yaml.safe_load(text)["agents"] == [{"name": "Ada Lovelace", "vibe": "on", "engine": "fake"}]


def test_printed_file_keeps_tasks_that_it_cannot_express() -> None:
    odd = {**TASK, "name": "odd", "payload": {"kind": "agentTurn", "message": "a\x07b"}}
    tasks = [LiveTask(record["name"], record["name"], parse_task_record(record)) for record in (TASK, odd)]
    printed = parse_fleet(render_fleet([agent(tasks=tasks)], {}), "f").agents[0]
    assert [task.name for task in printed.tasks or ()] == ["report"]
    assert list(plan_tasks(printed, agent(tasks=tasks))) == []


@given(st.text() | st.sampled_from(["on", "1.10", "~", "", " a ", "a\n", "\na", "- a", "a: b", "#", "${X}", "|\n x"]))
def test_any_text_that_a_file_can_say_comes_back(text: str) -> None:
    if is_expressible(text):
        assert parse_yaml(dump_yaml({"value": text})).content == {"value": text}
        assert yaml.safe_load(dump_yaml({"value": text})) == {"value": text}
    else:
        assert not all(char.isprintable() or char in "\t\n" for char in text)
