"""`roost tasks ...`: list, create, show, update, delete, run, toggle, runs."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from roost.cli.agents import Name
from roost.cli.client import Data, ServerSession, session
from roost.cli.output import ExitCode, Output, OutputFormat, fail, say, show_record, show_rows

nouns = typer.Typer(help="What agents do at their times.", no_args_is_help=True)
Task = Annotated[str, typer.Argument(metavar="TASK", help="The task's id or name.")]
Description = Annotated[str | None, typer.Option(help="What it is for, in your words.")]
Model = Annotated[str | None, typer.Option(help="The model for this task.")]
Timeout = Annotated[int | None, typer.Option(min=1, help="Give up after so many seconds.")]
_COLUMNS = ("jobId", "name", "schedule", "enabled", "nextRunAt", "lastRunAt", "lastStatus")
_RUN_COLUMNS = ("startedAt", "status", "durationMs", "summary", "error")
_WHEN = "`0 9 * * 1-5`, the same with a zone behind it, `@daily`, `every 10m`, or a time."


@nouns.command("list")
def list_tasks(agent: Name, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """List an agent's tasks."""
    here = session(data)
    tasks = here.call("GET", _path(here, agent))["tasks"]
    show_rows(tasks if output is OutputFormat.JSON else [_plainly(task) for task in tasks], _COLUMNS, output)


@nouns.command()
def create(
    agent: Name,
    name: Annotated[str, typer.Argument(metavar="NAME", help="At most 100 characters.")],
    schedule: Annotated[str, typer.Argument(metavar="SCHEDULE", help=f"When: {_WHEN}")],
    message: Annotated[str, typer.Argument(metavar="MESSAGE", help="What the agent is told.")],
    description: Description = None,
    model: Model = None,
    timeout: Timeout = None,
    off: Annotated[bool, typer.Option("--off", help="Make it turned off.")] = False,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Schedule a task."""
    here = session(data)
    payload = _turn(message, model, timeout)
    body = {"name": name, "schedule": schedule, "payload": payload, "description": description, "enabled": not off}
    show_record(here.call("POST", _path(here, agent), _given(body))["task"], output)


@nouns.command()
def show(agent: Name, task: Task, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Show one task."""
    here = session(data)
    show_record(here.call("GET", _task_path(here, agent, task))["task"], output)


@nouns.command()
def update(
    agent: Name,
    task: Task,
    name: Annotated[str | None, typer.Option(help="A new name.")] = None,
    schedule: Annotated[str | None, typer.Option(help=f"When: {_WHEN}")] = None,
    message: Annotated[str | None, typer.Option(help="What the agent is told.")] = None,
    description: Description = None,
    model: Model = None,
    timeout: Timeout = None,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Change what is given of a task."""
    if message is None and (model or timeout):
        fail("`--model` and `--timeout` go with a `--message`.", ExitCode.USAGE)
    here = session(data)
    payload = None if message is None else _turn(message, model, timeout)
    body = {"name": name, "schedule": schedule, "payload": payload, "description": description}
    show_record(here.call("PUT", _task_path(here, agent, task), _given(body))["task"], output)


@nouns.command()
def delete(agent: Name, task: Task, data: Data = None) -> None:
    """Delete a task with its history."""
    here = session(data)
    say(here.call("DELETE", _task_path(here, agent, task))["message"])


@nouns.command()
def run(agent: Name, task: Task, data: Data = None) -> None:
    """Run a task now; `runs` shows how it ends."""
    here = session(data)
    say(here.call("POST", f"{_task_path(here, agent, task)}/run")["message"])


@nouns.command()
def toggle(
    agent: Name,
    task: Task,
    on: Annotated[bool | None, typer.Option("--on/--off", help="To which side; to the other one by default.")] = None,
    data: Data = None,
) -> None:
    """Turn a task on or off."""
    here = session(data)
    body = None if on is None else {"enabled": on}
    changed = here.call("POST", f"{_task_path(here, agent, task)}/toggle", body)["task"]
    say(f"{changed['name']} is {'on' if changed['enabled'] else 'off'}")


@nouns.command()
def runs(
    agent: Name,
    task: Task,
    limit: Annotated[int, typer.Option(min=1, max=200, help="At most so many.")] = 20,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Show a task's runs, newest first."""
    here = session(data)
    show_rows(here.call("GET", f"{_task_path(here, agent, task)}/runs?limit={limit}")["runs"], _RUN_COLUMNS, output)


def _path(here: ServerSession, agent: str) -> str:
    return f"/v0/agents/{here.agent(agent)['agentId']}/tasks"


def _task_path(here: ServerSession, agent: str, name: str) -> str:
    """The path of the task with that id, or with that name if there is just one."""
    path = _path(here, agent)
    found = [task for task in here.call("GET", path)["tasks"] if name in (task["id"], task["name"])]
    exact = [task for task in found if task["id"] == name] or found
    if not exact:
        fail(f"There is no task {name!r}; `roost tasks list` shows those that there are.", ExitCode.NOT_FOUND)
    if len(exact) > 1:
        fail(f"{len(exact)} tasks are called {name!r}: use the id.", ExitCode.USAGE)
    return f"{path}/{exact[0]['id']}"


def _turn(message: str, model: str | None, timeout: int | None) -> dict[str, Any]:
    return _given({"kind": "agentTurn", "message": message, "model": model, "timeoutSeconds": timeout})


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _plainly(task: Mapping[str, Any]) -> dict[str, Any]:
    """For a table: the schedule in a few words."""
    schedule: Mapping[str, Any] = task["schedule"] or {"kind": None}
    told = {
        "at": lambda: schedule["at"],
        "every": lambda: f"every {schedule['everyMs'] / 60_000:g}m",
        "cron": lambda: f"{schedule['expr']} {schedule['tz']}",
    }
    return {**task, "schedule": told.get(schedule["kind"], lambda: "the agent's own")()}
