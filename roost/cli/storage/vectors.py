"""`roost vectors ...`: add, show, query, remove, groups, agents, grant, revoke.

Files and groups are named by id or by name.
"""

import re
import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from roost.cli.client.session import Data, ServerSession, load_session, load_storage, path_segment
from roost.cli.completion import complete_agents, complete_groups
from roost.cli.output.output import (
    ExitCode,
    Output,
    OutputFormat,
    Yes,
    confirm_change,
    count_nouns,
    error_console,
    exit_with_error,
    print_line,
    print_record,
    print_rows,
)
from roost.cli.storage.file_lookup import Public, fetch_records, network_name
from roost.storage.content.unixfs.cid import Cid
from roost.storage.content.unixfs.errors import InvalidCid

commands = typer.Typer()
_File = Annotated[str, typer.Argument(metavar="FILE", help="The file's id, CID or name.")]
_Group = Annotated[str, typer.Argument(metavar="GROUP", help="The group's id or name.", autocompletion=complete_groups)]
_Agent = Annotated[str, typer.Argument(metavar="AGENT", help="The agent's id or name.", autocompletion=complete_agents)]
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_COLUMNS = ("file_id", "name", "state", "chunks", "reason")
_FIELDS = ("file_id", "name", "cid", "state", "chunks", "chunks_done", "model", "reason", "updated_at")
_PENDING = ("queued", "indexing")
_NAMES_LIMIT = 1000
_POLL_SECONDS = 1.0


@commands.command()
def add(
    files: Annotated[list[str] | None, typer.Argument(metavar="FILE", help="Ids, CIDs or names of files.")] = None,
    group: Annotated[str | None, typer.Option(help="Add all files of this group, by id or name.")] = None,
    public: Public = False,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Vectorize files, so that their groups can be searched, and wait until it is done."""
    if bool(files) == bool(group):
        exit_with_error("Name files, or a group with --group.", ExitCode.USAGE)
    server = load_storage(data)
    ids = [_find_file(server, file, public) for file in files or ()]
    if group:
        ids = [row["file_id"] for row in _list_group(server, _find_group(server, group, public))]
    rows = [_vectorize(server, file_id) for file_id in ids]
    print_rows(rows, _COLUMNS, output)
    if any(row["state"] == "failed" for row in rows):
        raise typer.Exit(ExitCode.FAILED)


@commands.command()
def show(
    file: Annotated[str | None, typer.Argument(metavar="FILE", help="The file's id, CID or name.")] = None,
    group: Annotated[str | None, typer.Option(help="Show all files of this group, by id or name.")] = None,
    public: Public = False,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Show the state of the vectors of a file, or of all files of a group."""
    if bool(file) == bool(group):
        exit_with_error("Name a file, or a group with --group.", ExitCode.USAGE)
    server = load_storage(data)
    if group:
        print_rows(_list_group(server, _find_group(server, group, public)), _COLUMNS, output)
    elif file:
        print_record(_get(server, _find_file(server, file, public)), output, _FIELDS)


@commands.command()
def query(
    group: _Group,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to search for.")],
    limit: Annotated[int, typer.Option(min=1, max=20, help="Maximum number of results.")] = 5,
    public: Public = False,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Search a group for the texts that are nearest to yours."""
    server = load_storage(data)
    path = f"/v3/vectorize/groups/{_find_group(server, group, public)}/query"
    found = server.call("POST", path, {"text": text, "limit": limit})["data"]
    if output is not OutputFormat.TABLE:
        print_record(found, output)
        return
    for match in found["matches"]:
        print_line(f"{match['score']:.3f}  {match['name'] or match['cid']}  {match['file_id']}")
        print_line("\n".join(f"       {line}" for line in match["text"].splitlines()) + "\n")
    if not found["matches"]:
        print_line("Nothing was found; `roost vectors show --group` shows which files are indexed.")
    if found["outdated_files"]:
        advice = f"roost vectors add --group {group}"
        print_line(f"{found['outdated_files']} files have vectors of another model: `{advice}`.", error_console)


@commands.command()
def remove(file: _File, public: Public = False, data: Data = None) -> None:
    """Delete the vectors of a file. The file stays."""
    server = load_storage(data)
    server.call("DELETE", f"/v3/vectorize/files/{_find_file(server, file, public)}")
    print_line("Removed.")


@commands.command()
def grant(group: _Group, agent: _Agent, public: Public = False, yes: Yes = False, data: Data = None) -> None:
    """Allow an agent to search a group and to vectorize its files."""
    _change_grant("PUT", group, agent, public, yes, load_session(data))
    print_line(f"{agent} may search {group}.")


@commands.command()
def revoke(group: _Group, agent: _Agent, public: Public = False, yes: Yes = False, data: Data = None) -> None:
    """Take that permission from an agent."""
    _change_grant("DELETE", group, agent, public, yes, load_session(data))
    print_line(f"{agent} may not search {group}.")


@commands.command("groups")
def list_groups(data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """List the groups that can be searched."""
    server = load_storage(data)
    print_rows(server.call("GET", "/v3/vectorize/groups")["data"]["groups"], ("id", "name", "network"), output)


@commands.command("agents")
def list_agents(group: _Group, public: Public = False, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """List the agents that may search a group."""
    server = load_storage(data)
    found = server.call("GET", f"/v3/vectorize/groups/{_find_group(server, group, public)}/agents")["data"]["agents"]
    print_rows(found, ("agent_id", "created_at"), output)


def _change_grant(method: str, group: str, agent: str, public: bool, yes: bool, session: ServerSession) -> None:
    server = session.storage_session()
    agent_id = path_segment(str(session.find_agent(agent)["agentId"]))
    group_id = _find_group(server, group, public)
    if not yes:
        files = count_nouns(len(_list_group(server, group_id)), "file")
        change = "can then search" if method == "PUT" else "can then no longer search"
        confirm_change(f"{agent} {change} {files} of {group}. Continue?", yes)
    server.call(method, f"/v3/vectorize/groups/{group_id}/agents/{agent_id}")


def _vectorize(server: ServerSession, file_id: str) -> Mapping[str, Any]:
    """Request the vectors of a file and show the progress on a terminal until they are there or failed."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=error_console, transient=True, disable=not error_console.is_terminal) as bar:
        task = bar.add_task("Vectorizing", total=None)
        response = server.request("POST", f"/v3/vectorize/files/{file_id}")
        row = _get(server, file_id)
        if response.status_code >= 400 and row["state"] != "failed":
            exit_with_error(str(response.json()["error"]["message"]))
        while row["state"] in _PENDING:
            bar.update(task, total=row["chunks"] or None, completed=row["chunks_done"])
            time.sleep(_POLL_SECONDS)
            row = _get(server, file_id)
    return row


def _get(server: ServerSession, file_id: str) -> Mapping[str, Any]:
    return server.call("GET", f"/v3/vectorize/files/{file_id}")["data"]


def _list_group(server: ServerSession, group_id: str) -> Sequence[Mapping[str, Any]]:
    return fetch_records(server, f"vectorize/groups/{group_id}/files", "files", {}, None)


def _find_file(server: ServerSession, file: str, public: bool) -> str:
    """Return the id of the file with that id, CID or name. Exits if there is none or several."""
    if _UUID.fullmatch(file):
        return file
    try:
        Cid.parse(file)
    except InvalidCid:
        return _find_named(server, "files", file, public)
    found = fetch_records(server, f"files/{network_name(public)}", "files", {"cid": file}, 1)
    return _require_one(found, "files", file, public)


def _find_group(server: ServerSession, group: str, public: bool) -> str:
    """Return the id of the group with that id or name. Exits if there is none or several."""
    return group if _UUID.fullmatch(group) else _find_named(server, "groups", group, public)


def _find_named(server: ServerSession, kind: str, name: str, public: bool) -> str:
    rows = fetch_records(server, f"{kind}/{network_name(public)}", kind, {"name": name}, _NAMES_LIMIT)
    return _require_one([row for row in rows if row["name"] == name], kind, name, public)


def _require_one(rows: Sequence[Mapping[str, Any]], kind: str, name: str, public: bool) -> str:
    if not rows:
        listing = f"roost {kind} list" + (" --public" if public else "")
        hint = "omit `--public` for private ones" if public else "use `--public` for public ones"
        exit_with_error(
            f"There is no {network_name(public)} {kind.removesuffix('s')} {name!r} ({hint}); `{listing}` shows all.",
            ExitCode.NOT_FOUND,
        )
    if len(rows) > 1:
        exit_with_error(f"{len(rows)} {kind} have the name {name!r}: use the id.", ExitCode.USAGE)
    return str(rows[0]["id"])
