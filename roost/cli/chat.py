"""`roost chat`: a conversation with an agent, one message or a prompt, streamed as the answer is written."""

import json
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import httpx2 as httpx
import typer

from roost.cli.agents import Name
from roost.cli.client import Data, Session, refuse, session, unreachable
from roost.cli.output import Exit, errors, fail, screen

_PATIENCE = 60  # seconds
_TIMEOUT = httpx.Timeout(300.0, connect=5.0)


class Conversation:
    """All that was said goes along with every message: an agent's HTTP surface keeps nothing in between."""

    def __init__(self, here: Session, agent_id: str) -> None:
        detail = here.call("GET", f"/v0/agents/{agent_id}")["agent"]
        token = detail["gatewayToken"] or here.call("GET", f"/v0/agents/{agent_id}/gateway-token")["token"]
        headers = {"Host": here.host_of(agent_id), "Authorization": f"Bearer {token}"}
        self._url = here.url
        self._client = httpx.Client(base_url=here.url, headers=headers, timeout=_TIMEOUT, trust_env=False)
        self._model = self._first_model()
        self._said: list[dict[str, str]] = []

    def say(self, text: str) -> Iterator[str]:
        """The pieces of the answer, as they come."""
        self._said.append({"role": "user", "content": text})
        body = {"model": self._model, "messages": self._said, "stream": True}
        answer: list[str] = []
        with unreachable(self._url), self._client.stream("POST", "/v1/chat/completions", json=body) as response:
            if response.status_code >= 400:
                response.read()
                refuse(response)
            for piece in _pieces(response.iter_lines()):
                answer.append(piece)
                yield piece
        self._said.append({"role": "assistant", "content": "".join(answer)})

    def _first_model(self) -> str:
        with unreachable(self._url):
            response = self._client.get("/v1/models")
        if response.status_code >= 400:
            refuse(response)
        return response.json()["data"][0]["id"]


def chat(
    agent: Name,
    message: Annotated[str | None, typer.Argument(help="One message; without it, a prompt.")] = None,
    data: Data = None,
) -> None:
    """Talk to an agent."""
    here = session(data)
    found = _settled(here, agent)
    conversation = Conversation(here, found["agentId"])
    if message is not None:
        _print(conversation.say(message))
        return
    errors.print(f"Talking to {found['name']}. Ctrl-D ends.", markup=False)
    while (line := _ask()) is not None:
        if line.strip():
            _print(conversation.say(line))


def _settled(here: Session, name: str) -> Mapping[str, Any]:
    """The agent, once it is not starting any more."""
    found = here.agent(name)
    with errors.status("The agent is starting ..."):
        for _ in range(_PATIENCE):
            if found["status"] != "starting":
                break
            time.sleep(1)
            found = here.agent(found["agentId"])
    if found["status"] == "failed":
        fail(f"The agent failed: {found['statusReason']}")
    return found


def _ask() -> str | None:
    try:
        return input("> " if sys.stdin.isatty() else "")
    except (EOFError, KeyboardInterrupt):
        return None


def _print(pieces: Iterator[str]) -> None:
    empty = True
    for piece in pieces:
        empty = False
        screen.out(_harmless(piece), end="")
        sys.stdout.flush()
    sys.stdout.write("\n")
    if empty:
        fail("The agent answered nothing; `roost agents logs` may say why.", Exit.FAILED)


def _pieces(lines: Iterator[str]) -> Iterator[str]:
    """The text in a stream of chat completion chunks (server-sent events)."""
    for line in lines:
        if not line.startswith("data:") or line == "data: [DONE]":
            continue
        event: dict[str, Any] = json.loads(line.removeprefix("data:"))
        if "error" in event:
            fail(str(event["error"].get("message", event["error"])))
        for choice in event.get("choices", ()):
            if text := choice.get("delta", {}).get("content"):
                yield text


def _harmless(text: str) -> str:
    """What an agent says must not steer the terminal."""
    return "".join(sign if sign.isprintable() or sign in "\n\t" else "?" for sign in text)
