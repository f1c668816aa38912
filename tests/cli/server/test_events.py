"""`roost events`: the changes of the last hour, and those that come, over connections that break."""

import json
from typing import Any

import pytest

from roost.cli.client import message_stream
from tests.cli.agents.test_logs import LogStreamServer, sends_messages, streams
from tests.cli.terminal import run


def event(number: int, kind: str = "file.added", **more: Any) -> dict[str, Any]:
    made = {"id": str(number), "type": kind, "at": "2026-01-02T03:04:05.000006Z", "agentId": None}
    return {**made, "subject": {"kind": "file", "id": "f1"}, "data": {"name": "töa\u001b"}, **more}


def message(number: int, kind: str) -> dict[str, Any]:
    return event(number, kind, subject=None, data={})


def events(server: LogStreamServer, *arguments: str) -> Any:
    return run("events", *arguments, ROOST_URL=server.url, ROOST_TOKEN="key")


def test_the_stored_events_are_printed_once() -> None:
    with streams(
        sends_messages(event(7)), sends_messages(event(8, data={}), message(8, "heartbeat"), event(9))
    ) as server:
        ran = events(server, "--types", "file")
    assert ran.stdout.splitlines() == [
        '     7  2026-01-02T03:04:05.000006Z  file.added         f1  name="t\\u00f6a\\u001b"',
        "     8  2026-01-02T03:04:05.000006Z  file.added         f1",
    ]
    assert ran.exit_code == 0
    assert [path for path, _ in server.asked] == ["/v0/events?types=file&after=oldest", "/v0/events?types=file&after=7"]


def test_who_changed_something_is_printed() -> None:
    actors = [
        {"kind": "session", "id": "k1", "name": "lap\u001btop"},
        {"kind": "token", "id": "a1", "name": None},
        {"kind": "signed_url", "id": None, "name": None},
    ]
    stored = [event(number, data={}, actor=actor) for number, actor in enumerate(actors)]
    with streams(sends_messages(*stored, message(8, "heartbeat"))) as server:
        lines = events(server).stdout.splitlines()
    assert [line.partition("  f1  ")[2] for line in lines] == [
        'by session "lap\\u001btop"',
        "by token",
        "by signed url",
    ]


def test_events_are_followed_after_the_last_position() -> None:
    first = sends_messages(message(3, "heartbeat"), event(4), message(6, "heartbeat"))
    second = sends_messages(message(20, "reset"), code=1008, reason="Unauthorized")
    with streams(first, second) as server:
        ran = events(server, "-f", "--agent", "Ada", "-o", "json")
    assert [json.loads(line)["id"] for line in ran.stdout.splitlines()] == ["4", "20"]
    paths = [path for path, _ in server.asked if path != "/v0/agents"]
    assert paths == ["/v0/agents/a1/events", "/v0/agents/a1/events?after=6"]
    assert (ran.exit_code, ran.stderr.splitlines()[-1]) == (4, "Error: Unauthorized")


def test_a_reset_says_what_to_do() -> None:
    with streams(sends_messages(message(20, "reset"), message(20, "heartbeat"))) as server:
        assert "some events are gone: reload" in events(server, "--after", "3").stdout
    assert server.asked[0][0] == "/v0/events?after=3"


def test_refusals_have_exit_codes() -> None:
    with streams() as server:
        ran = events(server)
    assert (ran.exit_code, ran.stderr) == (5, "Error: Agent not found\n")
    assert run("events", ROOST_URL="http://127.0.0.1:1", ROOST_TOKEN="key").exit_code == 3


def test_a_server_that_is_away_for_days_is_tried_each_half_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(message_stream, "sleep", slept.append)
    reconnection = message_stream._Reconnection("event")
    for _ in range(2000):
        reconnection.wait()
    assert (slept[:6], set(slept[6:])) == ([1, 2, 4, 8, 16, 30], {30})
