"""`roost chat`: what is sent along, how a stream is read, and everything that an answer can be instead."""

import json
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from roost.cli.agents import chat
from roost.cli.agents.chat import _parse_stream
from roost.core.event_stream_decoder import decode_events
from tests.cli.terminal import FakeServer, run, run_on_terminal
from tests.platforms.tls import Authority

ADA = {"agentId": "a1", "name": "Ada", "status": "running", "statusReason": None, "gatewayToken": "rst_gw_own"}
CHAT = "POST /v1/chat/completions"


def event(content: object) -> str:
    return "data: " + json.dumps({"choices": [{"delta": {"content": content}}]}) + "\n\n"


@pytest.fixture
def ada(server: FakeServer) -> FakeServer:
    server.answers["GET /v0/agents"] = (200, {"agents": [ADA]})
    server.answers["GET /v0/agents/a1"] = (200, {"agent": ADA})
    server.answers["GET /v1/models"] = (200, {"data": [{"id": "first"}, {"id": "second"}]})
    server.answers[CHAT] = (200, event("Hel") + event("lo") + "data: [DONE]\n\n")
    return server


def test_one_message_is_answered(ada: FakeServer) -> None:
    said = ada.run("chat", "Ada", "Good morning")
    assert (said.exit_code, said.stdout, said.stderr) == (0, "Hello\n", "")
    (body,) = ada.bodies(CHAT)
    assert body == {"model": "first", "messages": [{"role": "user", "content": "Good morning"}], "stream": True}
    headers = next(headers for line, headers, _ in ada.requests if line == CHAT)
    assert headers["Authorization"] == "Bearer rst_gw_own"
    assert headers["Host"] == f"a1.agents.localhost:{ada.server_port}"


def test_the_domain_of_another_server(ada: FakeServer) -> None:
    ada.deployment = {"domain": "example.com"}
    ada.run("chat", "Ada", "x")
    assert ada.requests[-1][1]["Host"] == f"a1.agents.example.com:{ada.server_port}"


def test_the_servers_own_authority_is_trusted(ada: FakeServer, tmp_path: Path) -> None:
    authority = Authority("Own authority")
    ada.socket = authority.server("localhost").wrap_socket(ada.socket, server_side=True)
    trusted = tmp_path / "authority.pem"
    trusted.write_bytes(authority.certificate)
    url = f"https://localhost:{ada.server_port}"
    said = run("chat", "Ada", "Good morning", ROOST_URL=url, ROOST_TOKEN="key", SSL_CERT_FILE=str(trusted))
    assert (said.exit_code, said.stdout, said.stderr) == (0, "Hello\n", "")


def test_a_token_that_is_not_in_the_record_is_asked_for(ada: FakeServer) -> None:
    ada.answers["GET /v0/agents/a1"] = (200, {"agent": {**ADA, "gatewayToken": None}})
    ada.answers["GET /v0/agents/a1/gateway-token"] = (200, {"token": "rst_gw_asked"})
    ada.run("chat", "Ada", "x")
    assert ada.requests[-1][1]["Authorization"] == "Bearer rst_gw_asked"


def test_a_conversation_sends_all_that_was_said(ada: FakeServer) -> None:
    said = ada.run("chat", "Ada", input="one\n\n  \ntwo\n")
    assert said.exit_code == 0
    assert said.stdout == "Hello\nHello\n"
    assert "Ada" in said.stderr
    first, second = ada.bodies(CHAT)
    assert [message["content"] for message in first["messages"]] == ["one"]
    assert [(message["role"], message["content"]) for message in second["messages"]] == [
        ("user", "one"),
        ("assistant", "Hello"),
        ("user", "two"),
    ]


def test_a_script_leaves_at_the_first_failure(ada: FakeServer) -> None:
    ada.answers[CHAT] = [(429, {"error": {"message": "Slow down"}}), (200, event("never"))]
    said = ada.run("chat", "Ada", input="one\ntwo\n")
    assert (said.exit_code, len(ada.bodies(CHAT))) == (1, 1)
    assert "Slow down" in said.stderr


def test_an_agent_that_is_starting_is_waited_for(ada: FakeServer) -> None:
    starting = {**ADA, "status": "starting"}
    ada.answers["GET /v0/agents"] = [
        (200, {"agents": [starting]}),
        (200, {"agents": [starting]}),
        (200, {"agents": [ADA]}),
    ]
    assert ada.run("chat", "Ada", "x").stdout == "Hello\n"
    assert len(ada.bodies("GET /v0/agents")) == 3


def test_the_terminal_shows_that_an_agent_is_starting_only_if_it_is(ada: FakeServer) -> None:
    code = f"import os; os.environ |= {ada.environment}; from roost.cli.main import cli; cli(['chat', 'Ada', 'x'])"
    assert run_on_terminal(code) == "Hello\n"
    ada.answers["GET /v0/agents"] = [(200, {"agents": [{**ADA, "status": "starting"}]}), (200, {"agents": [ADA]})]
    assert "The agent is starting ..." in run_on_terminal(code)


@pytest.mark.parametrize(
    ("status", "reason", "told"),
    [("failed", "It broke.\x1b[31m Badly.", "It broke. Badly."), ("not_running", None, "not running")],
)
def test_an_agent_that_does_not_run(ada: FakeServer, status: str, reason: str | None, told: str) -> None:
    ada.answers["GET /v0/agents"] = (200, {"agents": [{**ADA, "status": status, "statusReason": reason}]})
    said = ada.run("chat", "Ada", "x")
    assert (said.exit_code, said.stdout) == (1, "")
    assert told in said.stderr
    assert "\x1b" not in said.stderr


def test_a_silent_agent_is_told_of(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    is_noticed, notices = Event(), list[str]()

    def notice(text: str, *_: object) -> None:
        notices.append(text)
        is_noticed.set()

    def pieces() -> Iterator[str]:
        yield "half a "
        assert is_noticed.wait(20)
        yield "sentence"

    monkeypatch.setattr(chat, "_SILENCE_SECONDS", 0.02)
    monkeypatch.setattr(chat, "print_line", notice)
    chat._print_answer(pieces())
    assert notices[0].startswith("\nThe agent has sent nothing for ")
    assert capsys.readouterr().out == "half a sentence\n"


def test_a_silence_is_told_of_once_in_15_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    now, waits, notices = 0.0, 0, list[str]()

    class EarlyEvent(Event):
        """A wait that ends a moment before its time."""

        def wait(self, timeout: float | None = None) -> bool:
            nonlocal now, waits
            now, waits = now + max((timeout or 0) - 0.001, 0.0006), waits + 1
            return waits == 6

    monkeypatch.setattr(chat, "Event", EarlyEvent)
    monkeypatch.setattr(chat.clock, "monotonic_seconds", lambda: now)
    monkeypatch.setattr(chat, "print_line", lambda text, *_: notices.append(text.strip()))
    with chat._silence_notices():
        pass
    assert notices == [f"The agent has sent nothing for {seconds} seconds." for seconds in (15, 30)]


@pytest.mark.parametrize(
    ("answer", "code", "shown", "told"),
    [
        ((401, {"error": "Unauthorized"}), 4, "", "Unauthorized"),
        ((502, "<html>"), 1, "", "502"),
        ((200, ""), 1, "", "answer is empty"),
        ((200, "data: [DONE]\n\n"), 1, "", "answer is empty"),
        ((200, event("part") + 'data: {"error": {"message": "no tokens left"}}\n\n'), 1, "part", "no tokens left"),
        ((200, event("part") + 'data: {"error": "broken"}\n\n'), 1, "part", "broken"),
        ((200, event("part") + "data: {\n\n"), 1, "part", "not a stream"),
        ((200, event(["no text"])), 1, "", "not a stream"),
        ((200, "data: 7\n\n"), 1, "", "not a stream"),
        ((200, 'data: {"choices": [7]}\n\n'), 1, "", "not a stream"),
        ((200, "data: " + "[" * 100_000 + "\n\n"), 1, "", "not a stream"),
    ],
)
def test_answers_that_are_none(ada: FakeServer, answer: tuple[int, str], code: int, shown: str, told: str) -> None:
    ada.answers[CHAT] = answer
    said = ada.run("chat", "Ada", "x")
    assert (said.exit_code, said.stdout) == (code, shown + "\n")
    assert told in said.stderr
    assert "Traceback" not in said.stderr


@pytest.mark.parametrize("models", [{}, {"data": []}, {"data": [{}]}, [], "text", None])
def test_a_gateway_without_models(ada: FakeServer, models: Any) -> None:
    ada.answers["GET /v1/models"] = (200, models)
    said = ada.run("chat", "Ada", "x")
    assert said.exit_code == 1
    assert "no model" in said.stderr


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ('data: {"choices": [{"delta": {"content": "a"}}, {"delta": {"content": "b"}}]}', "ab"),
        ('data:{"choices": [{"delta": {"content": "tight"}}]}', "tight"),
        ('data: {"choices": [{"delta": {"role": "assistant"}}]}', None),
        ('data: {"choices": [{"delta": {"content": null}}]}', None),
        ('data: {"choices": [{"delta": null}]}', None),
        ('data: {"choices": [], "usage": {}}', None),
        ('data: {"choices": null}', None),
        ('data: {"error": null, "choices": [{"delta": {"content": "fine"}}]}', "fine"),
        (": a comment", None),
        ("event: message", None),
        ("", None),
        ("data: [DONE]", None),
        ("data:[DONE]", None),
        ('data: {"choices":\ndata: [{"delta": {"content": "a\u2028b\x85"}}]}', "a\u2028b\x85"),
        ('\ufeffdata: {"choices": [{"delta": {"content": "first"}}]}', "first"),
    ],
)
def test_the_lines_of_a_stream(line: str, text: str | None) -> None:
    stream = decode_events([f"{line}\n\n".encode()])
    assert list(_parse_stream(stream)) == ([] if text is None else [text])
