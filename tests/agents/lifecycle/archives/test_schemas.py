"""A manifest is what the agent was, and an untrusted one names what is wrong with it."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from roost.agents.library.templates.manifest import ManifestTask
from roost.agents.lifecycle.archives.schemas import AgentManifest, InvalidArchive, parse_manifest
from roost.drivers.engine.abilities.tasks import AGENT_TURN, OneTimeSchedule, Task, TaskDelivery, TaskPayload

MANIFEST = {"version": 1, "engine": "fake", "agent": {"name": "Eve"}}
TASK = {"name": "Report", "schedule": {"kind": "cron", "expr": "0 8 * * *"}, "payload": {"kind": "agentTurn"}}


def test_there_and_back() -> None:
    parsed = parse_manifest(json.dumps({**MANIFEST, "unknown": 1, "tasks": [TASK]}).encode())
    assert parsed.profile(None).name == "Eve"
    assert parsed.profile("Ada").name == "Ada"
    assert parse_manifest(parsed.encode()).encode() == parsed.encode()
    assert b"null" not in parsed.encode()


def test_a_task_keeps_what_creates_it() -> None:
    at = datetime(2027, 1, 2, tzinfo=UTC)
    payload = TaskPayload(AGENT_TURN, "Say hello", timeout_seconds=5)
    more = {"created_at": at, "next_run_at": at, "last_run_at": at, "last_status": "ok", "last_error": "secret"}
    task = Task(
        "id", "Report", None, True, OneTimeSchedule(at), payload, TaskDelivery(), "main", "now", **more, running=True
    )
    kept = AgentManifest.model_validate({**MANIFEST, "tasks": [ManifestTask.from_task(task)]}).encode()
    assert json.loads(kept)["tasks"] == [
        {
            "name": "Report",
            "schedule": {"kind": "at", "at": "2027-01-02T00:00:00.000000Z"},
            "payload": {"kind": "agentTurn", "message": "Say hello", "timeoutSeconds": 5},
            "enabled": True,
            "delivery": {"mode": "none", "bestEffort": False},
            "sessionTarget": "main",
            "wakeMode": "now",
        }
    ]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (b"", "Invalid JSON"),
        (b"[" * 100_000, "Invalid JSON"),
        (b"\xff", "Invalid JSON"),
        (b'"text"', "Input should be an object"),
        ({"version": 2}, "version: "),
        ({"engine": 5}, "engine: "),
        ({"engine": "a\0"}, "engine: "),
        ({"agent": "Eve"}, "agent: "),
        ({"agent": {"name": ""}}, "agent.name: Agent name is required"),
        ({"agent": {"name": "<b>"}}, "agent.name: Agent name contains invalid characters"),
        ({"agent": {"name": "x" * 101}}, "agent.name: "),
        ({"agent": {"name": "x", "emoji": ["x"]}}, "agent.emoji: "),
        ({"secrets": [{"name": "X=rm"}]}, "secrets.0.name: "),
        ({"secrets": [{"name": "X\n"}]}, "secrets.0.name: "),
        ({"secrets": [{"name": "X", "type": "other"}]}, "secrets.0.type: "),
        ({"secrets": [{"name": "X"}] * 1001}, "secrets: "),
        ({"tasks": {}}, "tasks: "),
        ({"tasks": ["x"]}, "tasks.0: "),
        ({"tasks": [TASK] * 21}, "tasks: "),
        ({"tasks": [{**TASK, "enabled": "yes"}]}, "tasks.0.enabled: "),
        ({"tasks": [{**TASK, "schedule": "@daily"}]}, "tasks.0.schedule: "),
        ({"channels": {"irc": {}}}, "channels.irc"),
        ({"channels": {"slack": {"dmPolicy": "all"}}}, "channels.slack.dmPolicy: "),
        ({"channels": {"slack": {"allowFrom": ["x" * 65]}}}, "channels.slack.allowFrom.0: "),
    ],
)
def test_malformed_manifests_name_the_reason(change: bytes | dict[str, Any], reason: str) -> None:
    data = change if isinstance(change, bytes) else json.dumps(MANIFEST | change).encode()
    with pytest.raises(InvalidArchive) as refusal:
        parse_manifest(data)
    assert refusal.value.message.startswith(f"Invalid archive: manifest.json: {reason}")
