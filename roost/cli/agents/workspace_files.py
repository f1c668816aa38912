"""`roost workspace ...`: list, delete, move, mkdir, watch. `roost cp` copies files in and out."""

from typing import Annotated, Any
from urllib.parse import urlencode

import typer

from roost.cli.arguments import AgentName
from roost.cli.client.message_stream import print_messages, receive_server_events
from roost.cli.client.session import Data, load_session
from roost.cli.output.output import Output, OutputFormat, Yes, confirm_change, print_line, print_rows

commands = typer.Typer()
_Path = Annotated[str, typer.Argument(metavar="PATH", help="Path in the workspace.")]
_Recursive = Annotated[bool, typer.Option("--recursive", "-r", help="With all below a folder.")]
_COLUMNS = ("path", "kind", "size", "modifiedAt")


@commands.command("list")
def list_files(
    agent: AgentName,
    path: Annotated[str, typer.Argument(metavar="PATH", help="Folder in the workspace.")] = ".",
    recursive: _Recursive = False,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """List the files and folders of a workspace."""
    server = load_session(data)
    query = {"path": path, "recursive": str(recursive).lower()}
    entries = server.fetch_pages(f"{server.agent_path(agent)}/files/list", "entries", query)
    print_rows(list(entries), _COLUMNS, output)


@commands.command()
def delete(agent: AgentName, path: _Path, recursive: _Recursive = False, yes: Yes = False, data: Data = None) -> None:
    """Delete a file or folder of a workspace."""
    server = load_session(data)
    files = f"{server.agent_path(agent)}/files"
    confirm_change(f"Delete {path} of {agent}{' with all below it' if recursive else ''}?", yes)
    server.call("DELETE", f"{files}?{urlencode({'path': path, 'recursive': str(recursive).lower()})}")
    print_line("Deleted.")


@commands.command()
def move(
    agent: AgentName,
    path: _Path,
    target: Annotated[str, typer.Argument(metavar="TARGET", help="Its new path, which must not exist.")],
    data: Data = None,
) -> None:
    """Rename or move a file or folder of a workspace."""
    server = load_session(data)
    server.call("POST", f"{server.agent_path(agent)}/files/move", {"path": path, "target": target})
    print_line(f"Moved {path} to {target}.")


@commands.command("mkdir")
def make_folder(agent: AgentName, path: _Path, data: Data = None) -> None:
    """Create a folder in a workspace, with its parents."""
    server = load_session(data)
    server.call("POST", f"{server.agent_path(agent)}/files/folder", {"path": path})
    print_line(f"Created {path}.")


@commands.command()
def watch(agent: AgentName, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Print the paths of a workspace that change, until Ctrl-C."""
    server = load_session(data)
    path = f"{server.agent_path(agent)}/files/watch"
    changes = receive_server_events(server, path, "change", {"paths": [], "complete": False})
    print_messages(changes, output, _format_change)


def _format_change(event: dict[str, Any]) -> str:
    return "\n".join([*event["paths"], *([] if event["complete"] else ["(and others: list the files again)"])])
