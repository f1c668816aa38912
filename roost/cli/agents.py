"""`roost agents ...`: list, create, show, delete, restart, logs, exec."""

from typing import Annotated

import typer

from roost.cli.client import Data, Name, session
from roost.cli.execute import AS_TYPED, execute
from roost.cli.logs import logs
from roost.cli.output import Output, OutputFormat, errors, say, show_record, show_rows

nouns = typer.Typer(help="Assistants, each in its own container.", no_args_is_help=True)
_COLUMNS = ("agentId", "name", "engine", "agentVersion", "status", "createdAt")


@nouns.command("list")
def list_agents(data: Data = None, output: Output = OutputFormat.TABLE) -> None:
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
    output: Output = OutputFormat.TABLE,
) -> None:
    """Create an agent; returns when it answers."""
    body = {"name": name, "engine": engine, "description": description, "emoji": emoji}
    here = session(data)
    with errors.status("Starting the agent ..."):
        answer = here.call("POST", "/v0/agents", {key: value for key, value in body.items() if value is not None})
    show_record(_without_token(answer["agent"]), output)


@nouns.command()
def show(agent: Name, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
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


nouns.command()(logs)
nouns.command(name="exec", context_settings=AS_TYPED)(execute)


def _without_token(record: dict[str, object]) -> dict[str, object]:
    """A credential is not printed in passing, where scrollback and logs keep it; nor is what `lifecycle` says too."""
    return {key: value for key, value in record.items() if key not in {"gatewayToken", "lifecycleJson"}}
