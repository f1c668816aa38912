"""`roost events`: prints the changes of the last hour, or follows them until Ctrl-C and resumes where it was."""

import json
import sys
import time
from collections.abc import Generator
from typing import Annotated, Any
from urllib.parse import urlencode

import typer

from roost.cli.client import Data, ServerSession, load_session
from roost.cli.output import (
    SIGINT_EXIT_CODE,
    ExitCode,
    Output,
    OutputFormat,
    error_console,
    exit_with_error,
    print_line,
    write_output,
)

Agent = Annotated[str | None, typer.Option(help="Only changes of this agent: its name or id.")]
Types = Annotated[str | None, typer.Option(help="Comma-separated types or kinds: `agent`, `file.added`.")]
After = Annotated[str | None, typer.Option(help="Begin after the event with this id.")]
_RECONNECT_SECONDS = 1.0
_POLICY_VIOLATION = 1008  # WebSocket close code (RFC 6455)


def print_events(
    agent: Agent = None,
    types: Types = None,
    after: After = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Print changes as they happen.")] = False,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Print the changes of agents, files and other resources in the last hour; with -f, follow new ones."""
    server = load_session(data)
    path = f"/v0/agents/{server.find_agent(agent)['agentId']}/events" if agent else "/v0/events"
    try:
        for event in _list_events(server, path, types, after or ("" if follow else "oldest"), follow=follow):
            write_output(_format_line(event, output), sys.stdout)
    except KeyboardInterrupt:
        raise typer.Exit(SIGINT_EXIT_CODE) from None


def _list_events(
    server: ServerSession, path: str, types: str | None, after: str, *, follow: bool
) -> Generator[dict[str, Any]]:
    """Yield events; to follow them, reconnect after the last one when the stream ends."""
    from websockets.exceptions import ConnectionClosed, InvalidStatus

    from roost.cli.websocket import exit_with_refusal, open_websocket

    is_open = False
    while True:
        query = urlencode({name: value for name, value in (("types", types), ("after", after)) if value})
        try:
            with open_websocket(server, f"{path}?{query}") as stream:
                is_open = True
                for text in stream:
                    event: dict[str, Any] = json.loads(text)
                    after = event["id"]
                    if event["type"] != "heartbeat":
                        yield event
                    elif not follow:  # all stored events were sent
                        return
        except InvalidStatus as refused:
            if not is_open or refused.response.status_code < 500:
                exit_with_refusal(refused)
        except ConnectionClosed as closed:
            if closed.rcvd and closed.rcvd.code == _POLICY_VIOLATION:
                exit_with_error(closed.rcvd.reason, ExitCode.NOT_ALLOWED)
        except OSError as error:
            if not is_open:
                exit_with_error(f"The connection to {server.url} failed: {error}.", ExitCode.UNREACHABLE)
        print_line("The event stream ended; reconnecting ...", error_console)
        time.sleep(_RECONNECT_SECONDS)


def _format_line(event: dict[str, Any], form: OutputFormat) -> str:
    if form is OutputFormat.JSON:
        return json.dumps(event, ensure_ascii=sys.stdout.isatty()) + "\n"
    subject = event["subject"]["id"] if event["subject"] else "some events are gone: reload"
    details = " ".join(f"{name}={json.dumps(value)}" for name, value in event["data"].items())
    return f"{event['id']:>6}  {event['at']}  {event['type']:<17}  {subject}  {details}".rstrip() + "\n"
