"""`roost system ...` for the operator, of any server that is reached over HTTP; `roost hosts ...` uses the database."""

from typing import Annotated

import typer

from roost.cli.client.session import Data, load_session
from roost.cli.output.output import (
    Output,
    OutputFormat,
    Yes,
    confirm_change,
    print_as_document,
    print_line,
    print_record,
    print_rows,
)
from roost.cli.server.data_folder import open_data_folder
from roost.core import clock

commands = typer.Typer()
host_commands = typer.Typer()
_ENGINE_COLUMNS = ("engine", "latestVersion", "installedVersions", "availableVersions", "outdatedAgents")


@commands.command()
def show(data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Show versions, failing parts, servers, background work, disk and memory (bytes)."""
    state = load_session(data).call("GET", "/v0/system")
    if print_as_document(state, output):
        return
    failing = [name for name, status in state["checks"].items() if status != "ok"]
    servers = [f"{host['name']} ({'running' if host['isRunning'] else 'stopped'})" for host in state["hosts"]]
    flat = {f"{part} {name}": value for part in ("operations", "disk", "memory") for name, value in state[part].items()}
    print_record({**state["software"], "failing": failing, "servers": servers, **flat}, output)


@commands.command("checks")
def list_checks(data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Run the checks of `roost doctor` on the server, and list what they find."""
    print_rows(load_session(data).call("GET", "/v0/system/checks")["checks"], ("status", "part", "detail"), output)


@commands.command("engines")
def list_engines(data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """List the engines with their installed and available versions, and your agents that are behind."""
    engines = load_session(data).call("GET", "/v0/system/engines")["engines"]
    rows = ({**one, "outdatedAgents": [agent["name"] for agent in one["outdatedAgents"]]} for one in engines)
    print_rows(rows, _ENGINE_COLUMNS, output, engines)


@host_commands.command("list")
def list_hosts(data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """List the servers of the database, oldest first."""
    from roost.agents.lifecycle.hosts import service
    from roost.core.db import read_database_time

    with open_data_folder(data) as (_, db):
        hosts, now = db.run(lambda connection: (service.list_hosts(connection), read_database_time(connection)))
    rows = [
        {
            "id": host.id,
            "name": host.name,
            "folder": host.folder,
            "running": host.is_running(now),
            "startedAt": clock.format_iso(host.started_at),
            "address": host.address,
        }
        for host in hosts
    ]
    print_rows(rows, ("id", "name", "folder", "running", "startedAt", "address"), output)


@host_commands.command("remove")
def remove_host(
    host_id: Annotated[str, typer.Argument(metavar="ID", help="Id, as in `roost hosts list`.")],
    data: Data = None,
    yes: Yes = False,
) -> None:
    """Give up a server that is lost for good: its agents are `not_running` and can be deleted."""
    from roost.agents.lifecycle.hosts import service

    with open_data_folder(data) as (_, db):
        confirm_change(f"Give up the server {host_id} and its agents?", yes)
        count = db.run(lambda connection: service.remove_host(connection, host_id))
    print_line(f"Removed, with {count} {'agent' if count == 1 else 'agents'}.")
