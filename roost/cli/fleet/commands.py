"""`roost apply`: make agents as a file declares them."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roost.cli.client.session import Data, ServerSession, load_session
from roost.cli.output.output import (
    ExitCode,
    Output,
    OutputFormat,
    Yes,
    confirm_change,
    error_console,
    exit_with_error,
    file_errors,
    print_document,
    print_error,
    print_line,
    write_output,
)

if TYPE_CHECKING:
    from roost.cli.fleet.apply import FleetPlan, FleetPlanner
    from roost.cli.fleet.plan import Change

_FILE_LIMIT = 1024**2  # bytes; the reader's limit is in characters


def apply_fleet(
    file: Annotated[str, typer.Option("--file", "-f", metavar="FILE", help="The file; `-` is standard input.")],
    plan_only: Annotated[bool, typer.Option("--plan", help="Show the difference and change nothing.")] = False,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="With --plan, exit with 6 if there are differences.")
    ] = False,
    update_secrets: Annotated[
        bool, typer.Option("--update-secrets", help="Send all values of secrets and tokens, also those that exist.")
    ] = False,
    yes: Yes = False,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Make agents as a file declares them: show the difference, then change only that.

    Asks first on a terminal. Exits with 1 if an agent could not be made as declared; the others are.
    """
    from roost.cli.fleet.apply import FleetPlanner  # slow to import
    from roost.cli.fleet.document import InvalidFleet, parse_fleet
    from roost.cli.fleet.live import FleetRequestRefused, FleetServer

    folder = Path() if file == "-" else Path(file).parent
    try:
        fleet = parse_fleet(_read_file(file), "standard input" if file == "-" else file)
    except InvalidFleet as problem:
        exit_with_error(problem.message, ExitCode.USAGE)
    planner = FleetPlanner(FleetServer(load_session(data)), fleet, folder, os.environ, sends=update_secrets)
    try:
        with error_console.status("Comparing ..."):
            plan = planner.plan()
        if missing := plan.list_missing(os.environ):
            exit_with_error(f"Set these environment variables: {', '.join(missing)}", ExitCode.USAGE)
        _print_plan(plan, output)
        if plan_only:
            differs = ExitCode.DIFFERENT if exit_code and plan.changes else 0
            raise typer.Exit(ExitCode.FAILED if plan.refusals else differs)
        if plan.changes and sys.stdin.isatty():
            confirm_change("Make these changes?", yes)
        _apply(planner, plan)
    except FleetRequestRefused as refused:
        exit_with_error(str(refused))


def print_fleet(server: ServerSession, agent_ids: Sequence[str]) -> None:
    """Print the file that declares these agents as they are."""
    from roost.agents.workspace.scripts.model import InvalidManifest
    from roost.cli.fleet.document import InvalidFleet, parse_fleet
    from roost.cli.fleet.live import FleetRequestRefused, FleetServer, render_fleet

    reader = FleetServer(server)
    try:
        with error_console.status("Reading ..."):
            agents = [reader.read_agent(agent_id) for agent_id in agent_ids]
            text = render_fleet(agents, reader.list_secrets())
        parse_fleet(text, "the agents")
    except (FleetRequestRefused, InvalidManifest, InvalidFleet) as problem:
        exit_with_error(str(problem))
    for agent in agents:
        if agent.tasks is None:
            print_line(f"{agent.name} does not run, so its tasks are not known and not shown.", error_console)
    write_output(text, sys.stdout)


def _read_file(file: str) -> str:
    with file_errors(file):
        if file == "-":
            content = sys.stdin.buffer.read(_FILE_LIMIT + 1)
        else:
            with Path(file).open("rb") as opened:
                content = opened.read(_FILE_LIMIT + 1)
        if len(content) > _FILE_LIMIT:
            exit_with_error(f"{file} is larger than {_FILE_LIMIT // 1024} KiB.", ExitCode.USAGE)
        return content.decode("utf-8-sig")


def _print_plan(plan: "FleetPlan", output: OutputFormat) -> None:
    from roost.cli.fleet.plan import Action

    if output is not OutputFormat.TABLE:
        records = [_change_record(change, None) for change in plan.secrets]
        for one in plan.agents:
            records += [_change_record(change, one.agent.name) for change in one.all_changes]
        print_document({"changes": records, "errors": list(plan.refusals)}, output)
        return
    for change in plan.secrets:
        print_line(_describe_change(change))
    for one in plan.agents:
        if one.is_new or one.changes:
            own = next((change for change in one.changes if change.kind == "agent"), None)
            made_from = f" from {one.agent.template}" if one.agent.template else ""
            about = made_from if own is None else f": {own.detail}"
            print_line(f"{Action.ADD if one.is_new else Action.CHANGE} agent {one.agent.name}{about}")
            for change in one.changes:
                if change is not own:
                    print_line(f"  {_describe_change(change)}")
    if not plan.changes and not plan.refusals:
        print_line("No changes.")
    for refusal in plan.refusals:
        print_error(refusal)


def _describe_change(change: "Change") -> str:
    separator = ": " if change.action == "~" else " "
    return f"{change.action} {change.kind} {change.name}{separator + change.detail if change.detail else ''}"


def _change_record(change: "Change", agent: str | None) -> dict[str, str | None]:
    action = {"+": "add", "~": "change", "-": "remove"}[change.action]
    return {"action": action, "kind": change.kind, "name": change.name, "agent": agent, "detail": change.detail}


def _apply(planner: "FleetPlanner", plan: "FleetPlan") -> None:
    failed = bool(plan.refusals)
    with error_console.status("Applying ..."):
        for result in planner.apply(plan):
            if result.failure is not None:
                failed = True
                print_error(f"{result.name}: {result.failure}")
                continue
            waiting = f", which waits for {', '.join(result.waits_for)}" if result.waits_for else ""
            print_line(f"Applied: {result.name}{waiting}", error_console)
    if failed:
        raise typer.Exit(ExitCode.FAILED)
