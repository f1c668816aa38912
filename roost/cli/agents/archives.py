"""`roost agents export` and `import`: an agent as one file."""

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, urlencode

import typer

from roost.cli.agents.snapshots import find_snapshot
from roost.cli.arguments import AgentName
from roost.cli.client.session import Data, ServerSession, load_session
from roost.cli.client.transfer import count_bytes, progress_bar, save_chunks
from roost.cli.output.output import (
    ExitCode,
    Output,
    OutputFormat,
    Yes,
    confirm_change,
    exit_with_error,
    print_document,
    print_line,
    secret_commands,
)

_CHUNK_BYTES = 1024**2


def export_agent(
    agent: AgentName,
    file: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file, `-` for standard output. Default: NAME.car.")
    ] = None,
    snapshot: Annotated[
        str | None, typer.Option(help="CID or label of one of its snapshots (default: its present state).")
    ] = None,
    yes: Yes = False,
    data: Data = None,
) -> None:
    """Write an agent to one file, without the values of its secrets; `import` creates the agent again anywhere."""
    server = load_session(data)
    found = server.find_agent(agent)
    target = file or Path(f"{found['name'].replace('/', '-')}.car")
    if target != Path("-") and target.exists():
        confirm_change(f"Replace {target}?", yes)
    path = f"/v0/agents/{found['agentId']}"
    if snapshot:
        cid = find_snapshot(server, f"{path}/snapshots", snapshot)["snapshotCid"]
        query = "?" + urlencode({"snapshotCid": cid})
    else:
        query = ""
    with progress_bar("Exporting", None) as advance:
        save_chunks(count_bytes(_download(server, f"{path}/export{query}"), advance), target, mode=0o600)
    if target != Path("-"):
        print_line(f"Exported {found['name']} to {target} ({target.stat().st_size} bytes).")


def import_agent(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file of `roost agents export`.")],
    name: Annotated[str | None, typer.Option(help="Name of the new agent (default: that in the file).")] = None,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Create an agent from a file of `export`, and say which secrets and channels it still needs."""
    server = load_session(data)
    try:
        size = file.stat().st_size
    except OSError as error:
        exit_with_error(f"{file}: {error.strerror}", ExitCode.USAGE)
    query = f"?name={quote(name, safe='')}" if name else ""
    headers = {"Content-Type": "application/vnd.ipld.car", "Content-Length": str(size)}
    with progress_bar("Importing", size) as advance:
        answer = server.send(f"/v0/agents/import{query}", count_bytes(_read_chunks(file, size), advance), headers)
    if output is not OutputFormat.TABLE:
        answer["agent"].pop("gatewayToken", None)
        print_document(answer, output)
        return
    print_line(f"Imported {answer['agent']['name']} ({answer['agent']['agentId']}).")
    for line in _describe_missing(server, answer):
        print_line(line)


def _download(server: ServerSession, path: str) -> Iterator[bytes]:
    with server.stream(path) as response:
        yield from response.iter_bytes()


def _read_chunks(file: Path, size: int) -> Iterator[bytes]:
    """Yield the bytes of a file as long as it was. Exits if it became shorter."""
    try:
        with file.open("rb") as opened:
            while size and (chunk := opened.read(min(size, _CHUNK_BYTES))):
                size -= len(chunk)
                yield chunk
    except OSError as error:
        exit_with_error(f"{file}: {error.strerror}", ExitCode.USAGE)
    if size:
        exit_with_error(f"{file} changed while it was read.", ExitCode.FAILED)


def _describe_missing(server: ServerSession, answer: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the agent still needs, with the commands that add it."""
    agent_id = answer["agent"]["agentId"]
    if missing := answer["missingSecrets"]:
        known = {secret["name"] for secret in server.call("GET", "/v0/secrets")["secrets"]}
        yield "It had these secrets, which you can attach:"
        for name in missing:
            yield f"  {secret_commands(agent_id, name, exists=name in known)}"
    if channels := answer["missingChannels"]:
        yield "It had these channels, whose tokens are not in the file:"
        for name, settings in channels.items():
            # Not as options: the author of the file must not choose who may write to the agent.
            users = ", ".join(settings["allowFrom"]) or "no user by name"
            command = shlex.join(["roost", "channels", "set", agent_id, name])
            yield f"  {command} (it had the policy {settings['dmPolicy']!r} and allowed {users})"
    for task in answer["skippedTasks"]:
        yield f"Skipped the task {task}: the engine refuses it."
