"""`roost devices ...`: list, approve, approve-all."""

from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import quote

import typer

from roost.cli.client import Data, session
from roost.cli.output import ExitCode, Output, OutputFormat, complain, errors, say, show_json, show_rows

nouns = typer.Typer(help="Devices that want to talk to an agent, and those that may.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(metavar="AGENT", help="The agent's id or name.")]
_COLUMNS = ("status", "requestId", "deviceId", "displayName", "platform", "clientId", "role", "remoteIp")


@nouns.command("list")
def list_devices(agent: Name, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """List the devices that wait for approval, and those that have it."""
    server = session(data)
    found = server.call("GET", _path(server.agent(agent)))
    if output is OutputFormat.JSON:
        show_json(found)
        return
    if not found["supported"]:
        say(found["message"], errors)
    show_rows([*found["pending"], *found["paired"]], _COLUMNS, output)


@nouns.command()
def approve(
    agent: Name,
    request_id: Annotated[str, typer.Argument(metavar="REQUEST", help="As `roost devices list` shows it.")],
    data: Data = None,
) -> None:
    """Let one device in."""
    server = session(data)
    say(server.call("POST", f"{_path(server.agent(agent))}/{quote(request_id, safe='')}/approve")["message"])


@nouns.command("approve-all")
def approve_all(agent: Name, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Let in every device that waits now."""
    server = session(data)
    done = server.call("POST", f"{_path(server.agent(agent))}/approve-all")
    if output is OutputFormat.JSON:
        show_json(done)
    else:
        say(done["message"])
        for one in done["failed"]:
            complain(f"{one['requestId']}: {one['error']}")
    if done["failed"]:
        raise typer.Exit(ExitCode.FAILED)


def _path(agent: Mapping[str, Any]) -> str:
    return f"/v0/agents/{agent['agentId']}/devices"
