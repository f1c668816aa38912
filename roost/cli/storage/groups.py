"""`roost groups ...`: list, create, show, update, delete, add, remove."""

from typing import Annotated

import typer

from roost.cli.client.session import Data, load_storage, path_segment
from roost.cli.completion import complete_groups
from roost.cli.output.output import (
    Output,
    OutputFormat,
    Yes,
    confirm_change,
    count_nouns,
    print_line,
    print_record,
    print_rows,
)
from roost.cli.storage.file_lookup import Public, fetch_records, network_name

commands = typer.Typer()
_Group = Annotated[
    str, typer.Argument(metavar="GROUP", help="The group's id.", parser=path_segment, autocompletion=complete_groups)
]
_Files = Annotated[list[str], typer.Argument(metavar="FILE", help="Ids of files.", parser=path_segment)]
_COLUMNS = ("id", "name", "is_public", "created_at")


@commands.command("list")
def list_groups(
    name: Annotated[str | None, typer.Option(help="Only names that contain this text.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of results.")] = 100,
    public: Public = False,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """List your groups."""
    server = load_storage(data)
    found = fetch_records(server, f"groups/{network_name(public)}", "groups", {"name": name}, limit)
    print_rows(found, _COLUMNS, output)


@commands.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the group.")],
    public: Public = False,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Create a group."""
    server = load_storage(data)
    print_record(server.call("POST", f"/v3/groups/{network_name(public)}", {"name": name})["data"], output)


@commands.command()
def show(group: _Group, public: Public = False, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Show one group; `roost files list --group` lists its files."""
    server = load_storage(data)
    print_record(server.call("GET", f"/v3/groups/{network_name(public)}/{group}")["data"], output)


@commands.command()
def update(
    group: _Group,
    name: Annotated[str, typer.Option(help="Name of the group.")],
    public: Public = False,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Rename a group."""
    server = load_storage(data)
    print_record(server.call("PUT", f"/v3/groups/{network_name(public)}/{group}", {"name": name})["data"], output)


@commands.command()
def delete(group: _Group, yes: Yes = False, public: Public = False, data: Data = None) -> None:
    """Delete a group. Its files stay."""
    server = load_storage(data)
    if not yes:
        agents = len(server.call("GET", f"/v3/vectorize/groups/{group}/agents")["data"]["agents"])
        confirm_change(f"{count_nouns(agents, 'agent')} can search the group {group} now. Delete it?", yes)
    server.call("DELETE", f"/v3/groups/{network_name(public)}/{group}")
    print_line("Deleted.")


@commands.command()
def add(group: _Group, files: _Files, public: Public = False, data: Data = None) -> None:
    """Move files into a group, out of their present group."""
    server = load_storage(data)
    for file in files:
        server.call("PUT", f"/v3/groups/{network_name(public)}/{group}/ids/{file}")
    print_line(f"Added {len(files)}.")


@commands.command()
def remove(group: _Group, files: _Files, public: Public = False, data: Data = None) -> None:
    """Remove files from a group."""
    server = load_storage(data)
    for file in files:
        server.call("DELETE", f"/v3/groups/{network_name(public)}/{group}/ids/{file}")
    print_line(f"Removed {len(files)}.")
