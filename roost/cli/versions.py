"""`roost versions` and `roost update`: which versions of its engine an agent can run, and the change to another."""

from typing import Annotated

import typer

from roost.cli.agents import Name
from roost.cli.client import Data, session
from roost.cli.output import ExitCode, Output, OutputFormat, errors, fail, say, show_json, show_record, show_rows

_PATIENCE = 1800.0  # an install takes minutes; the server ends it, and tells


def versions(agent: Name, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """List the versions that an agent can be updated to or restarted at, newest first."""
    here = session(data)
    with errors.status("Asking ..."):
        found = here.call("GET", f"/v0/agents/{here.agent(agent)['agentId']}/available-agent-versions")
    if output is OutputFormat.JSON:
        show_json(found)
        return
    current = found["currentVersion"]
    known = found["availableVersions"]
    listed = known if current in known else [current, *known]
    rows = [{"version": one, "engine": found["engine"], "current": "yes" if one == current else ""} for one in listed]
    show_rows(rows, ("version", "engine", "current"), output)


def update(
    agent: Name,
    to: Annotated[str | None, typer.Option(metavar="VERSION", help="This version; else the newest.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Only say whether there is a newer one.")] = False,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Update an agent's engine. One that does not hold is taken back, with what the agent remembered."""
    if check and to is not None:
        fail("`--check` looks for the newest version: leave out `--to`.", ExitCode.USAGE)
    here = session(data)
    path = f"/v0/agents/{here.agent(agent)['agentId']}/update"
    if check:
        show_record(here.call("GET", path), output)
        return
    with errors.status("Updating ..."):
        done = here.call("POST", path, {"tag": to} if to else {}, patience=_PATIENCE)
    if output is OutputFormat.JSON:
        show_json(done)
    elif done["success"]:
        say(done["output"])
    if not done["success"]:
        fail(done["output"])
