"""`roost hosts ...`: lists servers, removes lost ones. Uses the database directly, so it works without a server."""

from typing import Annotated

import typer

from roost.cli.client.session import Data
from roost.cli.output.output import Output, OutputFormat, Yes, confirm_change, print_line, print_rows
from roost.cli.server.data_folder import open_data_folder
from roost.core import clock

commands = typer.Typer()


@commands.command("list")
def list_hosts(data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """List the servers of the database, oldest first."""
    from roost.agents.lifecycle.hosts import service

    with open_data_folder(data) as (_, db):
        hosts = db.run(service.list_hosts)
    rows = [
        {
            "id": host.id,
            "name": host.name,
            "folder": host.folder,
            "running": host.is_running(clock.utc_now()),
            "startedAt": clock.format_iso(host.started_at),
        }
        for host in hosts
    ]
    print_rows(rows, ("id", "name", "folder", "running", "startedAt"), output)


@commands.command()
def remove(
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
