"""`roost secrets ...`: list, create, update, delete, attach, detach; and the exchange of the key that seals them.

A value is never an argument, where the shell's history and the list of processes keep it: it comes from a file, from
standard input, or is typed without being shown.
"""

import shlex
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

from roost.cli.agents import Name
from roost.cli.client import Data, ServerSession, session
from roost.cli.output import ExitCode, Output, OutputFormat, errors, fail, say, show_record, show_rows

nouns = typer.Typer(help="Secrets and variables that agents get.", no_args_is_help=True)
_Secret = Annotated[str, typer.Argument(metavar="SECRET", help="The secret's id or name.")]
_File = Annotated[Path | None, typer.Option("--value-file", help="Read the value from this file.")]
_MOST_BYTES = 1024**2


@nouns.command("list")
def list_secrets(
    agent: Annotated[str | None, typer.Option(help="Those of one agent, by its id or name.")] = None,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """List your secrets, or an agent's. Values of variables are shown with `-o json`."""
    here = session(data)
    if agent is not None:
        rows = here.call("GET", f"/v0/agents/{here.agent(agent)['agentId']}/secrets")["secrets"]
        show_rows(rows, ("name", "type", "synced", "updatedAt", "id"), output)
        return
    rows = here.call("GET", "/v0/secrets")["secrets"]
    if output is OutputFormat.TABLE:
        rows = [{**row, "agents": [agent["name"] for agent in row["agents"]]} for row in rows]
    show_rows(rows, ("name", "type", "agents", "updatedAt", "id"), output)


@nouns.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Like an environment variable: `OPENAI_API_KEY`.")],
    value_file: _File = None,
    variable: Annotated[bool, typer.Option("--variable", help="No secret: its value may be shown.")] = False,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Keep a secret. Its value is read from --value-file, else from standard input, else asked for."""
    here = session(data)
    body = {"name": name, "value": _value(value_file), "type": "variable" if variable else "secret"}
    show_record(here.call("POST", "/v0/secrets", body)["secret"], output)


@nouns.command()
def update(secret: _Secret, value_file: _File = None, data: Data = None) -> None:
    """Give a secret another value, read as `create` does."""
    here = session(data)
    found = _find(here, secret)
    here.call("PUT", f"/v0/secrets/{found['id']}", {"value": _value(value_file)})
    say("Updated.")
    for agent in found["agents"]:
        _say_restart(agent["name"])


@nouns.command()
def delete(secret: _Secret, data: Data = None) -> None:
    """Delete a secret that no agent has."""
    here = session(data)
    here.call("DELETE", f"/v0/secrets/{_find(here, secret)['id']}")
    say("Deleted.")


@nouns.command()
def attach(
    agent: Name,
    secret: Annotated[list[str], typer.Argument(metavar="SECRET...", help="Ids or names.")],
    data: Data = None,
) -> None:
    """Give an agent secrets."""
    here = session(data)
    agent_id, ids = here.agent(agent)["agentId"], [_find(here, one)["id"] for one in secret]
    added = here.call("POST", f"/v0/agents/{agent_id}/secrets", {"secretIds": ids})["attached"]
    say(f"Attached {added}.")
    if not all(row["synced"] for row in here.call("GET", f"/v0/agents/{agent_id}/secrets")["secrets"]):
        _say_restart(agent)


@nouns.command()
def detach(agent: Name, secret: _Secret, data: Data = None) -> None:
    """Take a secret from an agent."""
    here = session(data)
    here.call("DELETE", f"/v0/agents/{here.agent(agent)['agentId']}/secrets/{_find(here, secret)['id']}")
    say("Detached.")
    _say_restart(agent)


@nouns.command("rotate-key")
def rotate_key(data: Data = None) -> None:
    """Take a new key-encryption key and seal everything anew with it, beside running servers or without one."""
    from roost import app, config, keyring

    settings = config.load_settings(data=data)
    with closing(app.open_database(settings)) as db, errors.status("Sealing everything anew ..."):
        done = keyring.rotate_keys(settings, db)
    if done.resumed:
        say("Finished an exchange that had been cut off.")
    say(f"Sealed {done.renewed} values anew; the key is now {done.key_id}.")
    if settings.kek is not None:
        say("ROOST_KEK_OLD is not needed any more.")
    if done.lost:
        fail(f"{done.lost} values could not be opened with any key here, and were left as they are.")


def _find(here: ServerSession, secret: str) -> Mapping[str, Any]:
    found = [row for row in here.call("GET", "/v0/secrets")["secrets"] if secret in (row["id"], row["name"])]
    if not found:
        fail(f"There is no secret {secret!r}; `roost secrets list` shows those that there are.", ExitCode.NOT_FOUND)
    return found[0]


def _value(path: Path | None) -> str:
    """The value without the line break that ends it."""
    if path is None and sys.stdin.isatty():
        return str(typer.prompt("Value", hide_input=True, err=True))
    try:
        if path is None:
            content = sys.stdin.buffer.read(_MOST_BYTES)
        else:
            with path.open("rb") as file:
                content = file.read(_MOST_BYTES)
        return content.decode().removesuffix("\n").removesuffix("\r")
    except OSError as error:
        fail(f"{path or 'standard input'}: {error.strerror}", ExitCode.USAGE)
    except UnicodeDecodeError:
        fail("A value is text in UTF-8.", ExitCode.USAGE)


def _say_restart(agent: str) -> None:
    say(f"{agent} gets it at its next start: `roost agents restart {shlex.quote(agent)}`.")
