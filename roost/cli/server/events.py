"""`roost events`: prints the changes of the last hour, or follows them until Ctrl-C and resumes where it was."""

import json
from collections.abc import Generator
from contextlib import closing
from typing import Annotated, Any
from urllib.parse import urlencode

import typer

from roost.cli.client.message_stream import print_messages, receive_messages
from roost.cli.client.session import Data, ServerSession, load_session
from roost.cli.completion import complete_agents
from roost.cli.output.output import Output, OutputFormat

Agent = Annotated[
    str | None, typer.Option(help="Only changes of this agent: its name or id.", autocompletion=complete_agents)
]
Types = Annotated[str | None, typer.Option(help="Comma-separated types or kinds: `agent`, `file.added`.")]
After = Annotated[str | None, typer.Option(help="Begin after the event with this id.")]


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
    path = f"{server.agent_path(agent)}/events" if agent else "/v0/events"
    first = after or ("" if follow else "oldest")
    print_messages(_list_events(server, path, types, first, follow=follow), output, _format_line)


def _list_events(
    server: ServerSession, path: str, types: str | None, after: str, *, follow: bool
) -> Generator[dict[str, Any]]:
    """Yield events after one, by default until all stored ones were sent."""

    def next_path() -> str:
        return f"{path}?{urlencode({name: value for name, value in (('types', types), ('after', after)) if value})}"

    with closing(receive_messages(server, next_path, "event")) as events:
        for event in events:
            after = event["id"]
            if event["type"] != "heartbeat":
                yield event
            elif not follow:
                return


def _format_line(event: dict[str, Any]) -> str:
    subject = event["subject"]["id"] if event["subject"] else "some events are gone: reload"
    details = " ".join(f"{name}={json.dumps(value)}" for name, value in event["data"].items())
    line = f"{event['id']:>6}  {event['at']}  {event['type']:<17}  {subject}  {details}"
    return f"{line.rstrip()}{_format_actor(event.get('actor'))}"


def _format_actor(actor: dict[str, Any] | None) -> str:
    """Return `  by session "laptop"`: the kind of the actor, and the name of its key."""
    if actor is None:
        return ""
    name = f" {json.dumps(actor['name'])}" if actor["name"] else ""
    return f"  by {actor['kind'].replace('_', ' ')}{name}"
