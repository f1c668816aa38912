"""`roost secrets ...`: list, create, update, delete, attach, detach; and rotation of the key-encryption key.

A value is never an argument, which the shell history and the process list would show: it comes from a file, standard
input or a hidden prompt.
"""

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from roost.cli.arguments import AgentName
from roost.cli.client.session import Data, ServerSession, load_session
from roost.cli.completion import complete_secrets
from roost.cli.output.output import (
    ExitCode,
    Output,
    OutputFormat,
    Yes,
    confirm_change,
    error_console,
    exit_with_error,
    exit_with_unknown,
    print_line,
    print_record,
    print_rows,
)
from roost.cli.server.data_folder import open_data_folder

commands = typer.Typer()
_Secret = Annotated[
    str, typer.Argument(metavar="SECRET", help="The secret's id or name.", autocompletion=complete_secrets)
]
ValueFile = Annotated[Path | None, typer.Option("--value-file", help="Read the value from this file.")]
_MAX_VALUE_BYTES = 1024**2


@commands.command("list")
def list_secrets(
    agent: Annotated[str | None, typer.Option(help="Only secrets of the agent with this id or name.")] = None,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """List your secrets, or those of one agent. `-o json` includes the values of variables."""
    server = load_session(data)
    if agent is not None:
        rows = server.call("GET", f"{server.agent_path(agent)}/secrets")["secrets"]
        print_rows(rows, ("name", "type", "synced", "updatedAt", "id"), output)
        return
    found = server.call("GET", "/v0/secrets")["secrets"]
    rows = ({**row, "agents": [agent["name"] for agent in row["agents"]]} for row in found)
    print_rows(rows, ("name", "type", "agents", "updatedAt", "id"), output, found)


@commands.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of an environment variable: `OPENAI_API_KEY`.")],
    value_file: ValueFile = None,
    variable: Annotated[bool, typer.Option("--variable", help="Create a variable, whose value can be shown.")] = False,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Create a secret. Its value comes from --value-file, standard input or a prompt."""
    server = load_session(data)
    body = {"name": name, "value": read_value(value_file), "type": "variable" if variable else "secret"}
    print_record(server.call("POST", "/v0/secrets", body)["secret"], output)


@commands.command()
def update(secret: _Secret, value_file: ValueFile = None, yes: Yes = False, data: Data = None) -> None:
    """Change a secret's value, which is read as in `create`; at a terminal it asks if agents use the secret."""
    server = load_session(data)
    found = _find_secret(server, secret)
    if found["agents"] and sys.stdin.isatty():
        names = ", ".join(agent["name"] for agent in found["agents"])
        confirm_change(f"{names} {'uses' if len(found['agents']) == 1 else 'use'} {found['name']}. Replace it?", yes)
    server.call("PUT", f"/v0/secrets/{found['id']}", {"value": read_value(value_file)})
    print_line("Updated.")
    for agent in found["agents"]:
        _print_restart_hint(agent["name"])


@commands.command()
def delete(secret: _Secret, yes: Yes = False, data: Data = None) -> None:
    """Delete a secret that is attached to no agent."""
    server = load_session(data)
    found = _find_secret(server, secret)
    confirm_change(f"Delete {found['name']}?", yes)
    server.call("DELETE", f"/v0/secrets/{found['id']}")
    print_line("Deleted.")


@commands.command()
def attach(
    agent: AgentName,
    secret: Annotated[
        list[str], typer.Argument(metavar="SECRET", help="Ids or names.", autocompletion=complete_secrets)
    ],
    data: Data = None,
) -> None:
    """Attach secrets to an agent."""
    server = load_session(data)
    found, ids = server.find_agent(agent), [_find_secret(server, name)["id"] for name in secret]
    agent_id = found["agentId"]
    answer = server.call("POST", f"/v0/agents/{agent_id}/secrets", {"secretIds": ids})
    print_line(f"Attached {answer['attached']}.")
    for warning in answer.get("warnings", ()):
        print_line(f"Warning: {warning}.", error_console)
    if found.get("status") == "not_running":
        return  # it starts with the secret, by itself if it waited for it
    if not all(row["synced"] for row in server.call("GET", f"/v0/agents/{agent_id}/secrets")["secrets"]):
        _print_restart_hint(agent)


@commands.command()
def detach(agent: AgentName, secret: _Secret, data: Data = None) -> None:
    """Detach a secret from an agent."""
    server = load_session(data)
    server.call("DELETE", f"{server.agent_path(agent)}/secrets/{_find_secret(server, secret)['id']}")
    print_line("Detached.")
    _print_restart_hint(agent)


@commands.command("rotate-key")
def rotate_key(data: Data = None) -> None:
    """Replace the key-encryption key and re-encrypt all values, with or without running servers."""
    from roost import keyring

    with open_data_folder(data) as (settings, db), error_console.status("Re-encrypting all values ..."):
        done = keyring.rotate_keys(settings, db)
    if done.resumed:
        print_line("Resumed an interrupted rotation.")
    print_line(f"Re-encrypted {done.renewed} values; the key is now {done.key_id}.")
    if settings.kek is not None:
        print_line("ROOST_KEK_OLD is no longer needed.")
    if done.lost:
        exit_with_error(f"{done.lost} values could not be decrypted with any known key and were left unchanged.")


def _find_secret(server: ServerSession, secret: str) -> Mapping[str, Any]:
    secrets = server.call("GET", "/v0/secrets")["secrets"]
    found = [row for row in secrets if secret in (row["id"], row["name"])]
    if not found:
        exit_with_unknown("secret", secret, [row["name"] for row in secrets], "roost secrets list")
    return found[0]


def read_value(path: Path | None, prompt: str = "Value") -> str:
    """Read a value without its final line break, at a terminal hidden."""
    if path is None and sys.stdin.isatty():
        return str(typer.prompt(prompt, hide_input=True, err=True))
    try:
        if path is None:
            content = sys.stdin.buffer.read(_MAX_VALUE_BYTES)
        else:
            with path.open("rb") as file:
                content = file.read(_MAX_VALUE_BYTES)
        return content.decode().removesuffix("\n").removesuffix("\r")
    except OSError as error:
        exit_with_error(f"{path or 'standard input'}: {error.strerror}", ExitCode.USAGE)
    except UnicodeDecodeError:
        exit_with_error("The value is not UTF-8 text.", ExitCode.USAGE)


def _print_restart_hint(agent: str) -> None:
    print_line(f"The change takes effect at the agent's next start: `roost agents restart {shlex.quote(agent)}`.")
