"""`roost config ...`, `versions`, `update`, `move`: configuration and version of an agent's engine, and its runtime."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from roost.cli.arguments import AgentName, optional_agent
from roost.cli.client.session import Data, ServerSession, load_session
from roost.cli.output.output import (
    ExitCode,
    Output,
    OutputFormat,
    error_console,
    exit_with_error,
    file_errors,
    print_as_document,
    print_line,
    print_record,
    print_rows,
    write_output,
)

commands = typer.Typer()
_FILE = "File in the engine's own format; `-` is standard input."
_VERSION_COLUMNS = ("version", "engine")
_MOVE_TIMEOUT_SECONDS = 7200.0
_UPDATE_TIMEOUT_SECONDS = 1800.0  # longer than the server's own limit for an installation


@commands.command()
def show(agent: AgentName, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Print the configuration, with placeholders for secrets."""
    found = _call(load_session(data), agent, "GET", "")
    if print_as_document(found, output):
        return
    write_output(found["config"] if found["config"].endswith("\n") else f"{found['config']}\n", sys.stdout)


@commands.command("set")
def set_config(
    agent: AgentName,
    file: Annotated[str, typer.Argument(metavar="FILE", help=_FILE)],
    data: Data = None,
) -> None:
    """Replace the configuration. Keys of the platform and values behind placeholders stay."""
    body = {"config": _read_config(file)}
    print_line(_call(load_session(data), agent, "PUT", "", body)["message"])


@commands.command()
def validate(
    agent: AgentName,
    file: Annotated[str | None, typer.Argument(metavar="FILE", help=_FILE, show_default=False)] = None,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Ask the engine to validate a file, or its present configuration."""
    body = None if file is None else {"config": _read_config(file)}
    found = _call(load_session(data), agent, "POST", "/validate", body)
    if not print_as_document(found, output):
        print_line(found["output"])
    if not found["valid"]:
        raise typer.Exit(ExitCode.FAILED)


def _call(server: ServerSession, name: str, method: str, path: str, body: Any = None) -> Any:
    return server.call(method, f"{server.agent_path(name)}/config{path}", body)


def _read_config(file: str) -> str:
    with file_errors(file):
        return sys.stdin.read() if file == "-" else Path(file).read_text()


def list_versions(
    agent: Annotated[str | None, optional_agent("the versions of new agents")] = None,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """List the engine versions that an agent can be updated to or restarted with, newest first."""
    server = load_session(data)
    owner = "" if agent is None else f"/agents/{server.find_agent(agent)['agentId']}"
    with error_console.status("Loading ..."):
        found = server.call("GET", f"/v0{owner}/available-agent-versions")
    if print_as_document(found, output):
        return
    if agent is None:
        engines = found["availableVersionsPerEngine"].items()
        rows = [{"engine": engine, "version": version} for engine, versions in engines for version in versions]
        print_rows(rows, _VERSION_COLUMNS, output)
        return
    current, known = found["currentVersion"], found["availableVersions"]
    rows = [
        {"version": version, "engine": found["engine"], "current": "yes" if version == current else ""}
        for version in (known if current in known else [current, *known])
    ]
    print_rows(rows, (*_VERSION_COLUMNS, "current"), output)


def update_engine(
    agent: AgentName,
    to: Annotated[str | None, typer.Option(metavar="VERSION", help="Version to install (default: the newest).")] = None,
    check: Annotated[bool, typer.Option("--check", help="Only check for a newer version.")] = False,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Update an agent's engine. A failed update is rolled back, with the agent's state."""
    if check and to is not None:
        exit_with_error("`--check` looks for the newest version: omit `--to`.", ExitCode.USAGE)
    server = load_session(data)
    path = f"{server.agent_path(agent)}/update"
    if check:
        print_record(server.call("GET", path), output)
        return
    with error_console.status("Updating ..."):
        done = server.call("POST", path, {"tag": to} if to else {}, timeout_seconds=_UPDATE_TIMEOUT_SECONDS)
    if not print_as_document(done, output) and done["success"]:
        print_line(done["output"])
    if not done["success"]:
        exit_with_error(done["output"])


def move_agent(
    agent: AgentName,
    to: Annotated[
        str, typer.Option(metavar="RUNTIME|SERVER", help="Runtime, or id or name of a server (`roost hosts list`).")
    ],
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Move an agent to another runtime or server, with all its files. A failed move is undone."""
    server = load_session(data)
    with error_console.status("Moving ..."):
        done = server.call(
            "POST", f"{server.agent_path(agent)}/move", {"to": to}, timeout_seconds=_MOVE_TIMEOUT_SECONDS
        )
    if not print_as_document(done, output) and done["success"]:
        print_line(done["output"])
    if not done["success"]:
        exit_with_error(done["output"])
