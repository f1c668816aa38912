"""`roost agents update|status|engines`: an agent's profile and state, and the engines of new agents."""

from typing import Annotated

import typer

from roost.cli.arguments import AgentName
from roost.cli.client.session import Data, load_session
from roost.cli.output.output import (
    ExitCode,
    Output,
    OutputFormat,
    error_console,
    exit_with_error,
    print_record,
    print_rows,
)

_UPDATE_TIMEOUT_SECONDS = 180.0  # another model restarts the gateway
_FIELDS = ("agentId", "name", "description", "vibe", "emoji", "model", "status")


def update_profile(
    agent: AgentName,
    name: Annotated[str | None, typer.Option(help="Another name.")] = None,
    description: Annotated[str | None, typer.Option(help="Purpose of the agent; an empty text removes it.")] = None,
    vibe: Annotated[str | None, typer.Option(help="How it talks; an empty text removes it.")] = None,
    emoji: Annotated[str | None, typer.Option(help="An emoji shown next to the name; empty: none.")] = None,
    model: Annotated[
        str | None, typer.Option(help="Preferred model; restarts the gateway. An empty text removes it.")
    ] = None,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Change an agent's name, description, vibe, emoji or preferred model."""
    profile = {"description": description, "vibe": vibe, "emoji": emoji, "model": model}
    given = {field: value or None for field, value in profile.items() if value is not None}
    body = given | ({} if name is None else {"name": name})
    if not body:
        exit_with_error("Nothing to change: give --name, --description, --vibe, --emoji or --model.", ExitCode.USAGE)
    server = load_session(data)
    path = f"/v0/agents/{server.find_agent(agent)['agentId']}/platform/metadata"
    with error_console.status("Changing ..."):
        answer = server.call("PATCH", path, body, timeout_seconds=_UPDATE_TIMEOUT_SECONDS)
    print_record(answer["agent"], output, _FIELDS)


def show_status(agent: AgentName, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Show an agent's state, and that of its gateway's process now."""
    server = load_session(data)
    print_record(server.call("GET", f"/v0/agents/{server.find_agent(agent)['agentId']}/status"), output)


def list_engines(data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """List the engines that new agents can have on the server."""
    print_rows(load_session(data).call("GET", "/v0/agents/engines")["engines"], ("id", "label"), output)
