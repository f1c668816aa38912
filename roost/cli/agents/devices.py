"""`roost devices ...`: list, approve, approve-all."""

from typing import Annotated
from urllib.parse import quote

import typer

from roost.cli.arguments import AgentName
from roost.cli.client.session import Data, load_session
from roost.cli.output.output import (
    ExitCode,
    Output,
    OutputFormat,
    error_console,
    print_as_document,
    print_error,
    print_line,
    print_rows,
)

commands = typer.Typer()
_COLUMNS = ("status", "requestId", "deviceId", "displayName", "platform", "clientId", "role", "remoteIp")


@commands.command("list")
def list_devices(agent: AgentName, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """List pending and paired devices."""
    server = load_session(data)
    found = server.call("GET", f"{server.agent_path(agent)}/devices")
    if print_as_document(found, output):
        return
    if not found["supported"]:
        print_line(found["message"], error_console)
    print_rows([*found["pending"], *found["paired"]], _COLUMNS, output)


@commands.command()
def approve(
    agent: AgentName,
    request_id: Annotated[str, typer.Argument(metavar="REQUEST", help="Request id, as in `roost devices list`.")],
    data: Data = None,
) -> None:
    """Approve one device."""
    server = load_session(data)
    path = f"{server.agent_path(agent)}/devices/{quote(request_id, safe='')}/approve"
    print_line(server.call("POST", path)["message"])


@commands.command("approve-all")
def approve_all(agent: AgentName, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Approve all pending devices."""
    server = load_session(data)
    done = server.call("POST", f"{server.agent_path(agent)}/devices/approve-all")
    if not print_as_document(done, output):
        print_line(done["message"])
        for failure in done["failed"]:
            print_error(f"{failure['requestId']}: {failure['error']}")
    if done["failed"]:
        raise typer.Exit(ExitCode.FAILED)
