"""`roost config ...`: show, set, validate."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from roost.cli.client import Data, ServerSession, session
from roost.cli.output import ExitCode, Output, OutputFormat, fail, say, show_json, write

nouns = typer.Typer(help="The configuration of an agent's engine.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(metavar="AGENT", help="The agent's id or name.")]
_FILE = "A file in the engine's own form; `-` is standard input."


@nouns.command()
def show(agent: Name, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Print the configuration, with placeholders for secrets."""
    found = _call(session(data), agent, "GET", "")
    if output is OutputFormat.JSON:
        show_json(found)
        return
    write(found["config"] if found["config"].endswith("\n") else f"{found['config']}\n", sys.stdout)


@nouns.command("set")
def set_config(
    agent: Name,
    file: Annotated[str, typer.Argument(metavar="FILE", help=_FILE)],
    data: Data = None,
) -> None:
    """Replace the configuration. The platform's keys stay, and placeholders keep the values they stand for."""
    body = {"config": _content(file)}
    say(_call(session(data), agent, "PUT", "", body)["message"])


@nouns.command()
def validate(
    agent: Name,
    file: Annotated[str | None, typer.Argument(metavar="[FILE]", help=_FILE, show_default=False)] = None,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Ask the engine whether a configuration is valid: one from a file, or the one that it has."""
    body = None if file is None else {"config": _content(file)}
    found = _call(session(data), agent, "POST", "/validate", body)
    if output is OutputFormat.JSON:
        show_json(found)
    else:
        say(found["output"])
    if not found["valid"]:
        raise typer.Exit(ExitCode.FAILED)


def _call(server: ServerSession, name: str, method: str, path: str, body: Any = None) -> Any:
    return server.call(method, f"/v0/agents/{server.agent(name)['agentId']}/config{path}", body)


def _content(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text()
    except OSError as error:
        fail(f"{file}: {error.strerror}", ExitCode.USAGE)
    except UnicodeDecodeError:
        fail(f"{file} is no text.", ExitCode.USAGE)
