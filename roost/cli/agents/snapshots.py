"""`roost snapshots ...`: list, sync, status, reset, diff, label."""

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Annotated, Any
from urllib.parse import urlencode

import typer

from roost.cli.arguments import AgentName
from roost.cli.client.session import Data, ServerSession, load_session
from roost.cli.output.output import (
    ExitCode,
    Output,
    OutputFormat,
    Yes,
    confirm_change,
    exit_with_error,
    print_as_document,
    print_line,
    print_record,
    print_rows,
)

commands = typer.Typer()
_COLUMNS = ("snapshotCid", "createdAt", "trigger", "label", "files", "size", "changeSummary")
_SNAPSHOT_HELP = "The CID of a snapshot, its first letters, or its label."
_TIMEOUT_SECONDS = 660.0
Snapshot = Annotated[str, typer.Argument(metavar="SNAPSHOT", help=_SNAPSHOT_HELP)]


@commands.command("list")
def list_snapshots(
    agent: AgentName,
    page: Annotated[int, typer.Option(min=1, help="Ten snapshots a page; later pages are older.")] = 1,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """List an agent's snapshots, newest first."""
    server = load_session(data)
    print_rows(server.call("GET", f"{server.agent_path(agent)}/snapshots?page={page}")["snapshots"], _COLUMNS, output)


@commands.command()
def sync(agent: AgentName, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Take a snapshot of an agent's workspace now."""
    server = load_session(data)
    result = server.call("POST", f"{server.agent_path(agent)}/snapshots/sync", timeout_seconds=_TIMEOUT_SECONDS)
    if print_as_document(result, output):
        return
    print_line(f"{result['snapshotCid']} ({result['changeSummary']})")
    for file in result["skipped"]:
        print_line(f"Skipped: {file['path']} ({_REASONS.get(file['reason'], file['reason'])})")


@commands.command()
def status(agent: AgentName, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Show when an agent's workspace was last saved, and as which snapshot."""
    server = load_session(data)
    print_record(
        server.call("GET", f"{server.agent_path(agent)}/snapshots/sync"), output, ("message", "lastSync", "snapshotCid")
    )


@commands.command()
def reset(
    agent: AgentName,
    snapshot: Annotated[
        str | None,
        typer.Argument(metavar="SNAPSHOT", help=f"{_SNAPSHOT_HELP} Default: the last that differs from now."),
    ] = None,
    state: Annotated[
        bool, typer.Option("--state", help="Also reset its memory: sessions, configuration, tasks. Restarts it.")
    ] = False,
    yes: Yes = False,
    data: Data = None,
) -> None:
    """Make an agent's workspace equal to a snapshot; what it has now is saved as a snapshot first."""
    server = load_session(data)
    path = f"{server.agent_path(agent)}/snapshots"
    found = find_snapshot(server, path, snapshot) if snapshot else _find_previous(server, path)
    what = "workspace and state" if state else "workspace"
    confirm_change(f"Replace the {what} of {agent} by the snapshot of {found['createdAt'][:19]} UTC?", yes)
    body = {"snapshotCid": found["snapshotCid"], "snapshotId": found["snapshotId"], "state": state}
    result = server.call("POST", f"{path}/reset", body, timeout_seconds=_TIMEOUT_SECONDS)
    print_line(f"{result['message']} {result['snapshotCid']}")


@commands.command()
def diff(
    agent: AgentName,
    old: Snapshot,
    new: Snapshot,
    file: Annotated[str | None, typer.Argument(metavar="PATH", help="Show how the text of this file differs.")] = None,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """List the files that differ between two snapshots."""
    server = load_session(data)
    path = f"{server.agent_path(agent)}/snapshots"
    before, after = (find_snapshot(server, path, name)["snapshotCid"] for name in (old, new))
    query = {"from": before, "to": after} | ({"path": file} if file else {})
    result = server.call("GET", f"{path}/diff?{urlencode(query)}")
    if print_as_document(result, output):
        return
    if file:
        print_line(result["diff"] or f"{file} is the same in both.")
    else:
        print_rows(result["changes"], ("change", "path"), output)


@commands.command()
def label(
    agent: AgentName,
    snapshot: Snapshot,
    text: Annotated[str | None, typer.Argument(metavar="LABEL", help="Default: remove the label.")] = None,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Label a snapshot, which is then kept for good."""
    server = load_session(data)
    path = f"{server.agent_path(agent)}/snapshots"
    cid = find_snapshot(server, path, snapshot)["snapshotCid"]
    print_record(server.call("PUT", f"{path}/{cid}/label", {"label": text}), output)


_REASONS: Mapping[str, str] = {
    "special": "a socket, pipe or device",
    "unreadable": "it cannot be read",
    "secret": "it holds the value of a secret",
    "name": "its name cannot be stored",
}


def _list_all(server: ServerSession, path: str) -> Iterator[Mapping[str, Any]]:
    for page in count(1):
        result = server.call("GET", f"{path}?page={page}")
        yield from result["snapshots"]
        if not result["hasMore"]:
            return


def take_snapshot(server: ServerSession, path: str) -> str:
    """Take a snapshot and return its CID; `path` is that of the agent's snapshots."""
    return server.call("POST", f"{path}/sync", timeout_seconds=_TIMEOUT_SECONDS)["snapshotCid"]


def find_snapshot(server: ServerSession, path: str, name: str) -> Mapping[str, Any]:
    """Return the newest snapshot with that label or CID, or the only one whose CID begins so."""
    found = list(_list_all(server, path))
    exact = [snapshot for snapshot in found if name in (snapshot["label"], snapshot["snapshotCid"])]
    if exact:
        return exact[0]
    similar = {snapshot["snapshotCid"]: snapshot for snapshot in found if snapshot["snapshotCid"].startswith(name)}
    if not similar:
        exit_with_error(f"There is no snapshot {name!r}; `roost snapshots list` shows all.", ExitCode.NOT_FOUND)
    if len(similar) > 1:
        exit_with_error(f"{len(similar)} snapshots begin with {name!r}: use more of the CID.", ExitCode.USAGE)
    return next(iter(similar.values()))


def _find_previous(server: ServerSession, path: str) -> Mapping[str, Any]:
    """Return the newest snapshot that differs from the present workspace."""
    now = take_snapshot(server, path)
    found = next((snapshot for snapshot in _list_all(server, path) if snapshot["snapshotCid"] != now), None)
    if found is None:
        exit_with_error("There is no other snapshot of this agent.", ExitCode.NOT_FOUND)
    return found
