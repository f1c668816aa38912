"""Chats with gateways that answer badly: each failure becomes the problem that says so."""

import asyncio
import json
from dataclasses import dataclass
from typing import cast
from unittest.mock import Mock

import pytest

from roost.agents.chat import service
from roost.agents.chat.errors import AgentUnreachable, AnswerFailed
from roost.agents.chat.service import ChatService, ChatTimes
from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.core.problem import Problem
from roost.core.sensitive import Sensitive
from roost.drivers.runtime.contract import Stream

OK = b"HTTP/1.1 200 OK\r\n"
LIMIT = 65536
TOO_LONG = "The agent's answer is too long"


@dataclass(frozen=True)
class Script:
    """What a gateway sends, and whether it then closes the connection."""

    sent: bytes
    closes: bool = True

    def play(self) -> Stream:
        reader = asyncio.StreamReader()
        reader.feed_data(self.sent)
        if self.closes:
            reader.feed_eof()
        return reader, Mock(spec=asyncio.StreamWriter)


MODELS = Script(OK + b"Connection: close\r\n\r\n" + json.dumps({"data": [{"id": "scripted"}]}).encode())
SWITCHING = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n"
failures = pytest.mark.parametrize(
    ("script", "problem"),
    [
        pytest.param(Script(b"HTTP/1.1 fine\r\n\r\n"), AnswerFailed(), id="malformed head"),
        pytest.param(
            Script(OK + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello"), AnswerFailed(), id="two lengths"
        ),
        pytest.param(Script(OK + b"X-Filler: much\r\n" * LIMIT), AnswerFailed(), id="long head"),
        pytest.param(Script(SWITCHING), AnswerFailed(), id="another protocol"),
        pytest.param(
            Script(OK + b"Connection: close\r\n\r\n" + b"a" * (LIMIT + 1)), AnswerFailed(TOO_LONG), id="too long"
        ),
        pytest.param(Script(b""), AgentUnreachable(), id="empty"),
        pytest.param(Script(b"", closes=False), AgentUnreachable(), id="silent"),
        pytest.param(
            Script(OK + b"Content-Length: 5\r\n\r\nhell", closes=False), AgentUnreachable(), id="silent in the body"
        ),
    ],
)


class ScriptedRuntimes:
    """The runtimes of one agent, whose gateway plays a script on each connection."""

    def __init__(self, *scripts: Script) -> None:
        self._streams = [script.play() for script in scripts]

    async def get_credential(self, agent_id: str) -> tuple[str, Sensitive[str]]:
        return "Authorization", Sensitive(f"Bearer {agent_id}")

    def record_use(self, agent_id: str) -> None:
        pass

    async def dial(self, agent_id: str) -> Stream:
        return self._streams.pop(0)


def chats(*scripts: Script) -> ChatService:
    return ChatService(cast("AgentRuntimes", ScriptedRuntimes(*scripts)), ChatTimes(models=0.1, silence=0.1))


@failures
async def test_a_failure_while_models_are_listed_is_raised(script: Script, problem: Problem) -> None:
    with pytest.raises(type(problem)) as raised:
        await chats(script).start_answer("ada", [])
    assert raised.value.message == problem.message


@failures
async def test_a_failure_of_an_answer_is_its_last_event(
    script: Script, problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "_MAX_ANSWER", LIMIT)
    answer = await chats(MODELS, script).start_answer("ada", [])
    async with asyncio.timeout(5):  # a failure that is no problem would leave only heartbeats
        events = b"".join([part async for part in answer]).split(b"\n\n")
    assert json.loads(events[-2].removeprefix(b"data: ")) == {"error": {"message": problem.message}}
