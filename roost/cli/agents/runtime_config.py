"""`roost config ...`: show, set, validate."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from roost.cli.arguments import AgentName
from roost.cli.client.session import Data, ServerSession, load_session
from roost.cli.output.output import (
    ExitCode,
    Output,
    OutputFormat,
    file_errors,
    print_as_document,
    print_line,
    write_output,
)

commands = typer.Typer()
_FILE = "File in the engine's own format; `-` is standard input."


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
