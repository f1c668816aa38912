"""`roost versions` and `roost update`: list the engine versions that an agent can run, and change to another."""

from typing import Annotated

import typer

from roost.cli.arguments import AgentName, optional_agent
from roost.cli.client.session import Data, load_session
from roost.cli.output.output import (
    ExitCode,
    Output,
    OutputFormat,
    error_console,
    exit_with_error,
    print_as_document,
    print_line,
    print_record,
    print_rows,
)

_COLUMNS = ("version", "engine")
_UPDATE_TIMEOUT_SECONDS = 1800.0  # longer than the server's own limit for an installation


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
    if agent is None:
        engines = found["availableVersionsPerEngine"].items()
        rows = [{"engine": engine, "version": version} for engine, versions in engines for version in versions]
        print_rows(rows, _COLUMNS, output, found)
        return
    current, known = found["currentVersion"], found["availableVersions"]
    rows = [
        {"version": version, "engine": found["engine"], "current": "yes" if version == current else ""}
        for version in (known if current in known else [current, *known])
    ]
    print_rows(rows, (*_COLUMNS, "current"), output, found)


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
