"""`roost groups ...`: list, create, show, update, delete, add, remove."""

from typing import Annotated

import typer

from roost.cli.client import Data, segment, session
from roost.cli.files import Public, listed, network
from roost.cli.output import Output, OutputFormat, say, show_record, show_rows

nouns = typer.Typer(help="Named containers of files.", no_args_is_help=True)
_Group = Annotated[str, typer.Argument(metavar="GROUP", help="The group's id.", parser=segment)]
_Files = Annotated[list[str], typer.Argument(metavar="FILE...", help="Ids of files.", parser=segment)]
_COLUMNS = ("id", "name", "is_public", "created_at")
_LIMIT = 100


@nouns.command("list")
def list_groups(
    name: Annotated[str | None, typer.Option(help="Those with this in their name.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = _LIMIT,
    public: Public = False,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """List your groups."""
    here = session(data).storage()
    show_rows(listed(here, f"groups/{network(public)}", "groups", {"name": name}, limit), _COLUMNS, output)


@nouns.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What to call it.")],
    public: Public = False,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Create a group."""
    here = session(data).storage()
    show_record(here.call("POST", f"/v3/groups/{network(public)}", {"name": name})["data"], output)


@nouns.command()
def show(group: _Group, public: Public = False, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Show one group; `roost files list --group` shows what is in it."""
    here = session(data).storage()
    show_record(here.call("GET", f"/v3/groups/{network(public)}/{group}")["data"], output)


@nouns.command()
def update(
    group: _Group,
    name: Annotated[str, typer.Option(help="What to call it.")],
    public: Public = False,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Give a group another name."""
    here = session(data).storage()
    show_record(here.call("PUT", f"/v3/groups/{network(public)}/{group}", {"name": name})["data"], output)


@nouns.command()
def delete(group: _Group, public: Public = False, data: Data = None) -> None:
    """Delete a group. Its files stay, in no group."""
    session(data).storage().call("DELETE", f"/v3/groups/{network(public)}/{group}")
    say("Deleted.")


@nouns.command()
def add(group: _Group, files: _Files, public: Public = False, data: Data = None) -> None:
    """Put files into a group, out of the one that they are in."""
    here = session(data).storage()
    for file in files:
        here.call("PUT", f"/v3/groups/{network(public)}/{group}/ids/{file}")
    say(f"Added {len(files)}.")


@nouns.command()
def remove(group: _Group, files: _Files, public: Public = False, data: Data = None) -> None:
    """Take files out of a group."""
    here = session(data).storage()
    for file in files:
        here.call("DELETE", f"/v3/groups/{network(public)}/{group}/ids/{file}")
    say(f"Removed {len(files)}.")
