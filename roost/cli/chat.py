"""`roost chat`: a conversation with an agent, one message or a prompt, streamed as the answer is written.

The answers come from a program in the agent's box: whatever it sends, it is shown as text or ends in an error.
"""

import json
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import httpx2 as httpx
import typer

from roost.cli.client import Data, Name, ServerSession, refuse, session, told, unreachable
from roost.cli.output import errors, fail, say, write
from roost.core import clock

_PATIENCE, _LOOK = 120.0, 0.25  # seconds: for an agent that is starting, and between two looks at it
_TIMEOUT = httpx.Timeout(300.0, connect=5.0)
_SHAPELESS = (ValueError, LookupError, TypeError, AttributeError, RecursionError)


class ChatConversation:
    """All that was said goes along with every message: an agent's HTTP surface keeps nothing in between."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        self._url = str(client.base_url)
        self._model = self._first_model()
        self._said: list[dict[str, str]] = []

    def say(self, text: str) -> Iterator[str]:
        """The pieces of the answer, as they come. What was not answered counts as not said."""
        question = {"role": "user", "content": text}
        body = {"model": self._model, "messages": [*self._said, question], "stream": True}
        answer: list[str] = []
        with unreachable(self._url), self._client.stream("POST", "/v1/chat/completions", json=body) as response:
            if response.status_code >= 400:
                response.read()
                refuse(response)
            for piece in _pieces(response.iter_lines()):
                answer.append(piece)
                yield piece
        if not answer:
            fail("The agent answered nothing; `roost agents logs` may say why.")
        self._said += [question, {"role": "assistant", "content": "".join(answer)}]

    def _first_model(self) -> str:
        with unreachable(self._url):
            response = self._client.get("/v1/models")
        if response.status_code >= 400:
            refuse(response)
        try:
            return str(response.json()["data"][0]["id"])
        except _SHAPELESS:
            fail("The agent names no model to talk to; `roost agents logs` may say why.")


def chat(
    agent: Name,
    message: Annotated[str | None, typer.Argument(metavar="[MESSAGE]", help="Without it, a prompt.")] = None,
    data: Data = None,
) -> None:
    """Talk to an agent."""
    here = session(data)
    found = _settled(here, agent)
    with _client(here, found["agentId"]) as client:
        conversation = ChatConversation(client)
        if message is not None:
            _print(conversation.say(message))
            return
        say(f"Talking to {found['name']}. Ctrl-D ends.", errors)
        while (line := _ask()) is not None:
            if line.strip():
                _answer(conversation, line)


def _settled(here: ServerSession, name: str) -> Mapping[str, Any]:
    """The agent, once it is not starting any more."""
    found = here.agent(name)
    last = clock.monotonic_seconds() + _PATIENCE
    with errors.status("The agent is starting ..."):
        while found["status"] == "starting" and clock.monotonic_seconds() < last:
            time.sleep(_LOOK)
            found = here.agent(found["agentId"])
    if found["status"] == "failed":
        fail(f"The agent failed: {found['statusReason']}")
    if found["status"] != "running":
        fail("The agent is still starting." if found["status"] == "starting" else "The agent is not running.")
    return found


def _client(here: ServerSession, agent_id: str) -> httpx.Client:
    """A client of the agent's own address, with its gateway token."""
    detail = here.call("GET", f"/v0/agents/{agent_id}")["agent"]
    token = detail["gatewayToken"] or here.call("GET", f"/v0/agents/{agent_id}/gateway-token")["token"]
    headers = {"Host": here.host_of(f"{agent_id}.agents"), "Authorization": f"Bearer {token}"}
    return httpx.Client(base_url=here.url, headers=headers, timeout=_TIMEOUT, trust_env=False)


def _ask() -> str | None:
    try:
        return input("> " if sys.stdin.isatty() else "")
    except (EOFError, KeyboardInterrupt):
        return None


def _answer(conversation: ChatConversation, line: str) -> None:
    """At a prompt a failure is told and the conversation goes on; a script is left with its exit code."""
    try:
        _print(conversation.say(line))
    except typer.Exit:
        if not sys.stdin.isatty():
            raise


def _print(pieces: Iterator[str]) -> None:
    try:
        for piece in pieces:
            write(piece, sys.stdout)
    finally:
        write("\n", sys.stdout)


def _pieces(lines: Iterator[str]) -> Iterator[str]:
    """The text in a stream of chat completion chunks (server-sent events)."""
    for line in lines:
        content = line.removeprefix("data:").strip()
        if not line.startswith("data:") or content == "[DONE]":
            continue
        try:
            event: dict[str, Any] = json.loads(content)
            failure = event.get("error")
            deltas: list[dict[str, str]] = [choice.get("delta") or {} for choice in event.get("choices") or ()]
            text = "".join(delta.get("content") or "" for delta in deltas)
        except _SHAPELESS:
            fail("The agent's answer cannot be read: it is no stream of chat completions.")
        if failure:
            fail(told(failure))
        if text:
            yield text
