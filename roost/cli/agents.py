"""`roost agents ...`: list, create, show, delete, restart, logs, exec."""

import shlex
import sys
from typing import Annotated

import typer

from roost.cli.client import Data, session
from roost.cli.output import Form, Output, complain, errors, say, show_json, show_record, show_rows, write

nouns = typer.Typer(help="Assistants, each in its own container.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(metavar="AGENT", help="The agent's id or name.")]
_COLUMNS = ("agentId", "name", "engine", "agentVersion", "status", "createdAt")


@nouns.command("list")
def list_agents(data: Data = None, output: Output = Form.TABLE) -> None:
    """List your agents."""
    show_rows(session(data).call("GET", "/v0/agents")["agents"], _COLUMNS, output)


@nouns.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="At most 100 characters.")],
    engine: Annotated[
        str | None, typer.Option(help="`openclaw` or `hermes`; the first that is installed by default.")
    ] = None,
    description: Annotated[str | None, typer.Option(help="What it is for, in your words.")] = None,
    emoji: Annotated[str | None, typer.Option(help="A sign to know it by.")] = None,
    data: Data = None,
    output: Output = Form.TABLE,
) -> None:
    """Create an agent; returns when it answers."""
    body = {"name": name, "engine": engine, "description": description, "emoji": emoji}
    here = session(data)
    with errors.status("Starting the agent ..."):
        answer = here.call("POST", "/v0/agents", {key: value for key, value in body.items() if value is not None})
    show_record(_without_token(answer["agent"]), output)


@nouns.command()
def show(agent: Name, data: Data = None, output: Output = Form.TABLE) -> None:
    """Show one agent."""
    here = session(data)
    detail = here.call("GET", f"/v0/agents/{here.agent(agent)['agentId']}")
    record = _without_token(detail["agent"])
    rest = {key: value for key, value in detail.items() if key != "agent"}
    show_record(record | rest, output)


@nouns.command()
def delete(
    agent: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    data: Data = None,
) -> None:
    """Delete an agent with its container and files."""
    here = session(data)
    found = here.agent(agent)
    if not yes:
        typer.confirm(f"Delete {found['name']} ({found['agentId']}) with all its files?", abort=True)
    say(here.call("DELETE", f"/v0/agents/{found['agentId']}")["message"])


@nouns.command()
def restart(
    agent: Name,
    version: Annotated[str | None, typer.Option(help="Restart at this version of the engine.")] = None,
    data: Data = None,
) -> None:
    """Restart an agent's gateway; returns when it answers again."""
    here = session(data)
    agent_id = here.agent(agent)["agentId"]
    with errors.status("Restarting ..."):
        answer = here.call("POST", f"/v0/agents/{agent_id}/restart", {"version": version} if version else {})
    say(answer["message"])


@nouns.command()
def logs(agent: Name, data: Data = None) -> None:
    """Print the last 100 lines of an agent's logs."""
    here = session(data)
    if text := here.call("GET", f"/v0/agents/{here.agent(agent)['agentId']}/logs")["logs"]:
        write(text + "\n", sys.stdout)


@nouns.command(name="exec", context_settings={"allow_interspersed_args": False})
def execute(
    agent: Name,
    command: Annotated[
        list[str], typer.Argument(metavar="COMMAND...", help="What follows the agent; a single word is a shell's line.")
    ],
    cwd: Annotated[str | None, typer.Option(help="A folder of the workspace.")] = None,
    timeout: Annotated[int, typer.Option(min=1, max=600, help="End it after so many seconds.")] = 60,
    data: Data = None,
    output: Output = Form.TABLE,
) -> None:
    """Run a command in an agent's container and leave with its exit code. Options go before AGENT."""
    here = session(data)
    words = command[1:] if command[0] == "--" else command
    line = words[0] if len(words) == 1 else shlex.join(words)
    order = {"command": line, "cwd": cwd, "timeoutSeconds": timeout}
    agent_id = here.agent(agent)["agentId"]
    result = here.call("POST", f"/v0/agents/{agent_id}/console/exec", order, patience=timeout + 30)
    if output is Form.JSON:
        show_json(result)
    else:
        write(result["stdout"], sys.stdout)
        write(result["stderr"], sys.stderr)
        if result["timedOut"]:
            complain(f"The command was ended after {timeout} s; `--timeout` gives it more.")
        if result["truncated"]:
            complain("The output was cut: it is longer than 1 MiB.")
    raise typer.Exit(result["exitCode"])


def _without_token(record: dict[str, object]) -> dict[str, object]:
    """A credential is not printed in passing, where scrollback and logs keep it."""
    return {key: value for key, value in record.items() if key != "gatewayToken"}
