"""`roost chat` sends one message to an agent, or opens a prompt; `roost conversations` reads what engines keep.

The answers come from a program in the agent's container and are not trusted: malformed ones end in an error.
"""

import json
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlencode

import typer

from roost.cli.arguments import AgentName
from roost.cli.client.session import (
    Data,
    ServerSession,
    connection_errors,
    error_text,
    exit_with_response,
    load_session,
    open_http_client,
)
from roost.cli.output.output import (
    Output,
    OutputFormat,
    error_console,
    exit_with_error,
    print_line,
    print_rows,
    write_output,
)
from roost.core import clock
from roost.core.event_stream_decoder import ServerSentEvent, decode_events

if TYPE_CHECKING:
    import httpx2 as httpx


conversation_commands = typer.Typer()
_START_TIMEOUT_SECONDS, _POLL_SECONDS = 120.0, 0.25
_ANSWER_TIMEOUT_SECONDS = 300.0
_SILENCE_SECONDS = 15.0
_MALFORMED = (ValueError, LookupError, TypeError, AttributeError, RecursionError)


def chat_with_agent(
    agent: AgentName,
    message: Annotated[
        str | None, typer.Argument(metavar="MESSAGE", help="Message to send (default: open a prompt).")
    ] = None,
    data: Data = None,
) -> None:
    """Talk to an agent."""
    server = load_session(data)
    found = _wait_until_ready(server, agent)
    with open_http_client(server.agent_session(found["agentId"]), _ANSWER_TIMEOUT_SECONDS) as client:
        conversation = ChatConversation(client)
        if message is not None:
            _print_answer(conversation.send(message))
            return
        print_line(f"Chat with {found['name']}. Press Ctrl-D to end.", error_console)
        while (line := _read_line()) is not None:
            if not line.strip():
                continue
            try:
                _print_answer(conversation.send(line))
            except typer.Exit:  # an interactive conversation continues after an error; a script exits
                if not sys.stdin.isatty():
                    raise


@conversation_commands.command("list")
def list_conversations(agent: AgentName, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """List the newest 100 conversations that the agent's engine keeps."""
    server = load_session(data)
    found = server.call("GET", f"{server.agent_path(agent)}/chat/conversations")["conversations"]
    print_rows(found, ("id", "title", "updatedAt"), output)


@conversation_commands.command("show")
def show_conversation(
    agent: AgentName,
    conversation: Annotated[
        str | None, typer.Argument(metavar="ID", help="Conversation (default: the newest one).")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="Number of messages.")] = 100,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Show the latest messages of a conversation, oldest first; as JSON with the tools that the agent used."""
    server = load_session(data)
    query = {"limit": str(limit), **({"conversationId": conversation} if conversation else {})}
    messages = server.call("GET", f"{server.agent_path(agent)}/chat/messages?{urlencode(query)}")["messages"]
    print_rows(messages, ("role", "text", "sentAt"), output)


@conversation_commands.command("stop")
def stop_answer(
    agent: AgentName,
    conversation: Annotated[str, typer.Argument(metavar="ID", help="Conversation whose answer is to end.")],
    data: Data = None,
) -> None:
    """Stop the answer that an agent writes; what it has written stays in the conversation."""
    server = load_session(data)
    answer = server.call("POST", f"{server.agent_path(agent)}/chat/stop", {"conversationId": conversation})
    print_line("The answer is stopped." if answer["stopped"] else "The agent writes no answer.")


class ChatConversation:
    """A conversation that sends its whole history with every message, because the agent's HTTP API is stateless."""

    def __init__(self, client: "httpx.Client") -> None:
        self._client = client
        self._url = str(client.base_url)
        self._model = self._first_model()
        self._history: list[dict[str, str]] = []

    def send(self, text: str) -> Iterator[str]:
        """Yield the answer as it arrives. An unanswered message is not added to the history."""
        question = {"role": "user", "content": text}
        body = {"model": self._model, "messages": [*self._history, question], "stream": True}
        answer: list[str] = []
        with connection_errors(self._url), self._client.stream("POST", "/v1/chat/completions", json=body) as response:
            if response.status_code >= 400:
                response.read()
                exit_with_response(response)
            for piece in _parse_stream(decode_events(response.iter_bytes())):
                answer.append(piece)
                yield piece
        if not answer:
            exit_with_error("The agent's answer is empty; `roost agents logs` may show the reason.")
        self._history += [question, {"role": "assistant", "content": "".join(answer)}]

    def _first_model(self) -> str:
        with connection_errors(self._url):
            response = self._client.get("/v1/models")
        if response.status_code >= 400:
            exit_with_response(response)
        try:
            return str(response.json()["data"][0]["id"])
        except _MALFORMED:
            exit_with_error("The agent offers no model; `roost agents logs` may show the reason.")


def _wait_until_ready(server: ServerSession, name: str) -> Mapping[str, Any]:
    """Wait until the agent has started and return it. Exits if it does not run."""
    found = server.find_agent(name)
    if found["status"] == "running":
        return found
    deadline = clock.monotonic_seconds() + _START_TIMEOUT_SECONDS
    with error_console.status("The agent is starting ..."):
        while found["status"] == "starting" and clock.monotonic_seconds() < deadline:
            time.sleep(_POLL_SECONDS)
            found = server.find_agent(found["agentId"])
    if found["status"] == "failed":
        exit_with_error(f"The agent failed: {found['statusReason']}")
    if found["status"] != "running":
        exit_with_error(
            "The agent is still starting." if found["status"] == "starting" else "The agent is not running."
        )
    return found


def _read_line() -> str | None:
    try:
        return input("> " if sys.stdin.isatty() else "")
    except (EOFError, KeyboardInterrupt):
        return None


def _print_answer(pieces: Iterator[str]) -> None:
    try:
        with _silence_notices() as note_piece:
            for piece in pieces:
                note_piece()
                write_output(piece, sys.stdout)
    finally:
        write_output("\n", sys.stdout)


@contextmanager
def _silence_notices() -> Generator[Callable[[], None]]:
    """Tell on standard error that an answer pauses, each 15 seconds; yield the function to call for each part of it."""
    over, spoken_at = Event(), clock.monotonic_seconds()

    def note_piece() -> None:
        nonlocal spoken_at
        spoken_at = clock.monotonic_seconds()

    def watch() -> None:
        printed = 0.0
        while not over.wait(_SILENCE_SECONDS - (clock.monotonic_seconds() - spoken_at) % _SILENCE_SECONDS):
            seconds = round(clock.monotonic_seconds() - spoken_at)
            if seconds >= _SILENCE_SECONDS and seconds != printed:  # a wait may end a moment early
                print_line(f"\nThe agent has sent nothing for {seconds} seconds.", error_console)
            printed = seconds

    watching = Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield note_piece
    finally:
        over.set()
        watching.join()


def _parse_stream(events: Iterator[ServerSentEvent]) -> Iterator[str]:
    """Yield the text of a stream of chat completion chunks."""
    while True:
        try:
            chunk = next(events, None)
            if chunk is None or chunk.data == "[DONE]":
                return
            event: dict[str, Any] = json.loads(chunk.data)
            failure = event.get("error")
            deltas: list[dict[str, str]] = [choice.get("delta") or {} for choice in event.get("choices") or ()]
            text = "".join(delta.get("content") or "" for delta in deltas)
        except _MALFORMED:
            exit_with_error("The agent's answer is not a stream of chat completions.")
        if failure:
            exit_with_error(error_text(failure))
        if text:
            yield text
