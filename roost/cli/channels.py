"""`roost channels ...`: list, set, remove. Tokens come from a prompt, a pipe or a file, never from the command line."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from roost.cli.agents import Name
from roost.cli.client import Data, session
from roost.cli.output import ExitCode, Output, OutputFormat, errors, fail, say, show_json, show_record, show_rows

nouns = typer.Typer(help="Chat channels of an agent: telegram, slack, discord, whatsapp.", no_args_is_help=True)
Channel = Annotated[str, typer.Argument(metavar="CHANNEL", help="telegram, slack, discord or whatsapp.")]
TokenFile = Annotated[Path | None, typer.Option(help="A file with the token; `-` reads a line of standard input.")]
_COLUMNS = ("channel", "enabled", "botUsername", "dmPolicy", "allowFrom", "botTokenHint", "connected", "lastError")


@nouns.command("list")
def list_channels(agent: Name, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """List an agent's channels, and how they fare."""
    here = session(data)
    answer = here.call("GET", f"/v0/agents/{here.agent(agent)['agentId']}/channels")
    if output is OutputFormat.JSON:
        show_json(answer)
        return
    show_rows([{"channel": name, **row} for name, row in answer.items() if isinstance(row, dict)], _COLUMNS, output)


@nouns.command("set")
def set_channel(
    agent: Name,
    channel: Channel,
    bot_token_file: TokenFile = None,
    app_token_file: TokenFile = None,
    keep_tokens: Annotated[bool, typer.Option("--keep-tokens", help="Change the rest, and ask for no token.")] = False,
    dm_policy: Annotated[str | None, typer.Option(help="`open` or `pairing`.")] = None,
    allow_from: Annotated[
        list[str] | None, typer.Option("--allow-from", help="A user id that may write to the bot; repeat it.")
    ] = None,
    anyone: Annotated[bool, typer.Option("--allow-anyone", help="Empty the list of user ids.")] = False,
    enabled: Annotated[bool | None, typer.Option("--enable/--disable", help="Without losing what is set.")] = None,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Configure a channel. Tokens are asked for where no file is named; an empty answer keeps the present one."""
    here = session(data)
    body: dict[str, Any] = {
        "dmPolicy": dm_policy,
        "allowFrom": [] if anyone else allow_from or None,
        "enabled": enabled,
    }
    if not keep_tokens:
        body["botToken"] = _token("bot token", bot_token_file)
        body["appToken"] = _token("app-level token", app_token_file) if channel == "slack" else None
    agent_id = here.agent(agent)["agentId"]
    order = {key: value for key, value in body.items() if value is not None}
    with errors.status("Configuring ..."):
        answer = here.call("POST", f"/v0/agents/{agent_id}/channels/{channel}", order, patience=400)
    show_record({key: value for key, value in answer.items() if key != "success"}, output)


@nouns.command()
def remove(
    agent: Name,
    channel: Channel,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    data: Data = None,
) -> None:
    """Remove a channel with its tokens."""
    here = session(data)
    found = here.agent(agent)
    if not yes:
        typer.confirm(f"Remove {channel} from {found['name']} ({found['agentId']})?", abort=True)
    with errors.status("Removing ..."):
        answer = here.call("DELETE", f"/v0/agents/{found['agentId']}/channels/{channel}", patience=400)
    say(answer["message"])


def _token(what: str, file: Path | None) -> str:
    """Without the white space around it. A terminal is asked, and does not show what is typed."""
    if file is not None and str(file) != "-":
        try:
            return file.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            fail(f"{file} could not be read: {error}", ExitCode.USAGE)
    if sys.stdin.isatty():
        return str(typer.prompt(what.capitalize(), hide_input=True, default="", show_default=False)).strip()
    return sys.stdin.readline(4096).strip()
