"""`roost conversations`: what is asked of the server, and what is shown of its answer."""

import json

import pytest

from tests.cli.terminal import FakeServer

CHAT = "/v0/agents/a1/chat"
USE = {"id": "u1", "name": "exec", "arguments": "ls", "state": "done", "result": "notes.md"}
ASKED = {"id": "m1", "role": "user", "text": "What is here?\x1b[2J", "tools": [], "sentAt": None, "isStopped": False}
ANSWERED = {"id": "m2", "role": "assistant", "text": "notes.md", "tools": [USE], "sentAt": None, "isStopped": False}


@pytest.fixture
def ada(server: FakeServer) -> FakeServer:
    server.answers["GET /v0/agents"] = (200, {"agents": [{"agentId": "a1", "name": "Ada"}]})
    return server


def test_list_shows_conversations(ada: FakeServer) -> None:
    found = {"id": "chat-1", "title": "notes", "updatedAt": "2026-01-02T03:04:05Z"}
    ada.answers[f"GET {CHAT}/conversations"] = (200, {"conversations": [found]})
    assert ada.run("conversations", "list", "Ada").stdout.splitlines()[1].split()[:2] == ["chat-1", "notes"]


def test_show_prints_messages_and_tools(ada: FakeServer) -> None:
    answer = {"conversationId": "chat-1", "messages": [ASKED, ANSWERED], "isAnswering": False}
    ada.answers[f"GET {CHAT}/messages?limit=100"] = (200, answer)
    shown = ada.run("conversations", "show", "Ada").stdout
    assert "What is here?" in shown
    assert "\x1b" not in shown
    ada.answers[f"GET {CHAT}/messages?limit=2&conversationId=a%26b"] = (200, answer)
    messages = json.loads(ada.run("conversations", "show", "Ada", "a&b", "--limit", "2", "-o", "json").stdout)
    assert messages[1]["tools"] == [USE]


@pytest.mark.parametrize(
    ("stopped", "line"), [(True, "The answer is stopped."), (False, "The agent writes no answer.")]
)
def test_stop_tells_whether_an_answer_stopped(ada: FakeServer, stopped: bool, line: str) -> None:
    ada.answers[f"POST {CHAT}/stop"] = (200, {"stopped": stopped})
    assert ada.run("conversations", "stop", "Ada", "chat-1").stdout == f"{line}\n"
    assert ada.requests[-1][-1] == {"conversationId": "chat-1"}
