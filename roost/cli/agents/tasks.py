"""`roost tasks ...`: list, create, show, update, delete, run, toggle, runs."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from roost.cli.arguments import AgentName
from roost.cli.client.session import Data, ServerSession, drop_none, load_session
from roost.cli.output.output import (
    ExitCode,
    Output,
    OutputFormat,
    Yes,
    confirm_change,
    exit_with_error,
    print_line,
    print_record,
    print_rows,
)

commands = typer.Typer()
Task = Annotated[str, typer.Argument(metavar="TASK", help="The task's id or name.")]
Description = Annotated[str | None, typer.Option(help="Purpose of the task.")]
Model = Annotated[str | None, typer.Option(help="Model that runs this task.")]
Timeout = Annotated[int | None, typer.Option(min=1, help="Stop a run after this many seconds.")]
_COLUMNS = ("jobId", "name", "schedule", "enabled", "nextRunAt", "lastRunAt", "lastStatus")
_RUN_COLUMNS = ("startedAt", "status", "durationMs", "summary", "error")
_SCHEDULE_HELP = "`0 9 * * 1-5`, optionally followed by a time zone, `@daily`, `every 10m`, or a time."


@commands.command("list")
def list_tasks(agent: AgentName, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """List an agent's tasks."""
    server = load_session(data)
    tasks = server.call("GET", f"{server.agent_path(agent)}/tasks")["tasks"]
    print_rows(map(_table_row, tasks), _COLUMNS, output, tasks)


@commands.command()
def create(
    agent: AgentName,
    name: Annotated[str, typer.Argument(metavar="NAME", help="At most 100 characters.")],
    schedule: Annotated[str, typer.Argument(metavar="SCHEDULE", help=f"Schedule: {_SCHEDULE_HELP}")],
    message: Annotated[str, typer.Argument(metavar="MESSAGE", help="Message to the agent.")],
    description: Description = None,
    model: Model = None,
    timeout: Timeout = None,
    off: Annotated[bool, typer.Option("--off", help="Create the task disabled.")] = False,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Schedule a task."""
    server = load_session(data)
    payload = _agent_turn(message, model, timeout)
    body = {"name": name, "schedule": schedule, "payload": payload, "description": description, "enabled": not off}
    print_record(server.call("POST", f"{server.agent_path(agent)}/tasks", drop_none(body))["task"], output)


@commands.command()
def show(agent: AgentName, task: Task, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Show one task."""
    server = load_session(data)
    print_record(server.call("GET", _task_path(server, agent, task))["task"], output)


@commands.command()
def update(
    agent: AgentName,
    task: Task,
    name: Annotated[str | None, typer.Option(help="A new name.")] = None,
    schedule: Annotated[str | None, typer.Option(help=f"Schedule: {_SCHEDULE_HELP}")] = None,
    message: Annotated[str | None, typer.Option(help="Message to the agent.")] = None,
    description: Description = None,
    model: Model = None,
    timeout: Timeout = None,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Change the given fields of a task."""
    if message is None and (model or timeout):
        exit_with_error("`--model` and `--timeout` need `--message`.", ExitCode.USAGE)
    server = load_session(data)
    payload = None if message is None else _agent_turn(message, model, timeout)
    body = {"name": name, "schedule": schedule, "payload": payload, "description": description}
    print_record(server.call("PUT", _task_path(server, agent, task), drop_none(body))["task"], output)


@commands.command()
def delete(agent: AgentName, task: Task, yes: Yes = False, data: Data = None) -> None:
    """Delete a task and its history."""
    server = load_session(data)
    path = _task_path(server, agent, task)
    confirm_change(f"Delete the task {task} and its history?", yes)
    print_line(server.call("DELETE", path)["message"])


@commands.command()
def run(agent: AgentName, task: Task, data: Data = None) -> None:
    """Run a task now; `runs` shows the result."""
    server = load_session(data)
    print_line(server.call("POST", f"{_task_path(server, agent, task)}/run")["message"])


@commands.command()
def toggle(
    agent: AgentName,
    task: Task,
    on: Annotated[
        bool | None, typer.Option("--on/--off", help="New state (default: the opposite of the present one).")
    ] = None,
    data: Data = None,
) -> None:
    """Enable or disable a task."""
    server = load_session(data)
    body = None if on is None else {"enabled": on}
    changed = server.call("POST", f"{_task_path(server, agent, task)}/toggle", body)["task"]
    print_line(f"{changed['name']} is {'on' if changed['enabled'] else 'off'}")


@commands.command()
def runs(
    agent: AgentName,
    task: Task,
    limit: Annotated[int, typer.Option(min=1, max=200, help="Maximum number of results.")] = 20,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Show a task's runs, newest first."""
    server = load_session(data)
    found = server.call("GET", f"{_task_path(server, agent, task)}/runs?limit={limit}")["runs"]
    print_rows(found, _RUN_COLUMNS, output)


def _task_path(server: ServerSession, agent: str, name: str) -> str:
    """Return the path of the task with that id, or of the only task with that name."""
    path = f"{server.agent_path(agent)}/tasks"
    found = [task for task in server.call("GET", path)["tasks"] if name in (task["id"], task["name"])]
    exact = [task for task in found if task["id"] == name] or found
    if not exact:
        exit_with_error(f"There is no task {name!r}; `roost tasks list` shows all.", ExitCode.NOT_FOUND)
    if len(exact) > 1:
        exit_with_error(f"{len(exact)} tasks have the name {name!r}: use the id.", ExitCode.USAGE)
    return f"{path}/{exact[0]['id']}"


def _agent_turn(message: str, model: str | None, timeout: int | None) -> dict[str, Any]:
    return drop_none({"kind": "agentTurn", "message": message, "model": model, "timeoutSeconds": timeout})


def _table_row(task: Mapping[str, Any]) -> dict[str, Any]:
    """Return the task with its schedule as short text."""
    schedule: Mapping[str, Any] = task["schedule"] or {"kind": None}
    texts = {
        "at": lambda: schedule["at"],
        "every": lambda: f"every {schedule['everyMs'] / 60_000:g}m",
        "cron": lambda: f"{schedule['expr']} {schedule['tz']}",
    }
    return {**task, "schedule": texts.get(schedule["kind"], lambda: "defined by the agent")()}
