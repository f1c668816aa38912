"""`roost channels ...`: list, set, approve, watch, remove.

Tokens come from a prompt, a pipe or a file, never from an argument.
"""

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from roost.cli.arguments import AgentName
from roost.cli.client.message_stream import print_messages, receive_server_events
from roost.cli.client.session import Data, ServerSession, load_session, path_segment
from roost.cli.output.output import (
    ExitCode,
    Output,
    OutputFormat,
    Yes,
    confirm_change,
    count_nouns,
    error_console,
    exit_with_error,
    print_line,
    print_record,
    print_rows,
)

commands = typer.Typer()
Channel = Annotated[str, typer.Argument(metavar="CHANNEL", help="telegram, slack, discord or whatsapp.")]
TokenFile = Annotated[Path | None, typer.Option(help="File with the token; `-` reads a line of standard input.")]
_ANYONE, _SHOWN = "anyone", 10
_COLUMNS = "channel enabled botUsername dmPolicy allowFrom botTokenHint connected lastError lastMessageAt".split()


@commands.command("list")
def list_channels(agent: AgentName, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """List an agent's channels and their status."""
    server = load_session(data)
    answer = server.call("GET", f"{server.agent_path(agent)}/channels")
    rows: dict[str, dict[str, Any]] = {name: row for name, row in answer.items() if isinstance(row, dict)}
    shown = ({"channel": name, **row, "lastError": _describe_error(row)} for name, row in rows.items())
    print_rows(shown, _COLUMNS, output, answer)


@commands.command("set")
def set_channel(
    agent: AgentName,
    channel: Channel,
    bot_token_file: TokenFile = None,
    app_token_file: TokenFile = None,
    keep_tokens: Annotated[
        bool, typer.Option("--keep-tokens", help="Keep the tokens and change only the rest.")
    ] = False,
    dm_policy: Annotated[str | None, typer.Option(help="`open` or `pairing`.")] = None,
    allow_from: Annotated[
        list[str] | None, typer.Option("--allow-from", help="Id of a user who may write to the bot; can be repeated.")
    ] = None,
    anyone: Annotated[bool, typer.Option("--allow-anyone", help="Clear the list of user ids.")] = False,
    enabled: Annotated[bool | None, typer.Option("--enable/--disable", help="Turn the channel on or off.")] = None,
    yes: Yes = False,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Configure a channel. Prompts for tokens without a file; an empty answer keeps the present token.

    A new channel gets --dm-policy pairing: strangers get a code, which `approve` approves. Not with --allow-from or
    --allow-anyone.
    """
    server = load_session(data)
    body: dict[str, Any] = {
        "dmPolicy": dm_policy,
        "allowFrom": [] if anyone else allow_from or None,
        "enabled": enabled,
    }
    if not keep_tokens:
        body["botToken"] = _read_token("bot token", bot_token_file)
        body["appToken"] = _read_token("app-level token", app_token_file) if channel == "slack" else None
    found = server.find_agent(agent)
    agent_id = found["agentId"]
    present = server.call("GET", f"/v0/agents/{agent_id}/channels").get(channel)
    if not (dm_policy or allow_from or anyone) and present is None:
        body["dmPolicy"] = "pairing"
        _print_pairing_hint(server, found, channel)
    _confirm_writers(channel, present, body, yes)
    request = {key: value for key, value in body.items() if value is not None}
    with error_console.status("Configuring ..."):
        answer = server.call("POST", f"/v0/agents/{agent_id}/channels/{channel}", request, timeout_seconds=400)
    print_record({key: value for key, value in answer.items() if key != "success"}, output)


@commands.command()
def approve(
    agent: AgentName,
    channel: Channel,
    code: Annotated[str, typer.Argument(metavar="CODE", help="The code that the bot sent, or the id of a request.")],
    data: Data = None,
) -> None:
    """Let the user who got this code write to the bot. `list` and `watch` show the requests of engines that tell."""
    server = load_session(data)
    path = f"{server.agent_path(agent)}/channels/{channel}/pairing/{path_segment(code)}/approve"
    with error_console.status("Approving ..."):
        print_line(server.call("POST", path, timeout_seconds=90)["message"])


@commands.command()
def watch(agent: AgentName, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Print who writes to the bots and who waits for approval, as it happens, until Ctrl-C."""
    server = load_session(data)
    path = f"{server.agent_path(agent)}/channels/watch"
    print_messages(receive_server_events(server, path, "channel"), output, _format_state)


@commands.command()
def remove(agent: AgentName, channel: Channel, yes: Yes = False, data: Data = None) -> None:
    """Remove a channel and its tokens."""
    server = load_session(data)
    found = server.find_agent(agent)
    confirm_change(f"Remove {channel} from {found['name']} ({found['agentId']})?", yes)
    with error_console.status("Removing ..."):
        answer = server.call("DELETE", f"/v0/agents/{found['agentId']}/channels/{channel}", timeout_seconds=400)
    print_line(answer["message"])


def _confirm_writers(channel: str, present: Mapping[str, Any] | None, body: Mapping[str, Any], yes: bool) -> None:
    """Ask before other people may write than now; a new channel for chosen people asks nothing."""
    old = present or {"enabled": True, "dmPolicy": "open", "allowFrom": []}
    new = {name: old[name] if body[name] is None else body[name] for name in ("enabled", "dmPolicy", "allowFrom")}
    before, after = "no one" if present is None else _describe_writers(present), _describe_writers(new)
    dropped, added = (set(a["allowFrom"]) - set(b["allowFrom"]) for a, b in ((old, new), (new, old)))
    is_other = before != after or (bool(dropped or added) and after not in (_ANYONE, "no one"))
    if is_other and (present or after == _ANYONE):
        confirm_change(f"On {channel}, {before} may write now, then {after}. Change it?", yes)


def _describe_writers(channel: Mapping[str, Any]) -> str:
    if not channel["enabled"]:
        return "no one"
    listed = [one for one in channel["allowFrom"] if one != "*"]
    names = f"{count_nouns(len(listed), 'user')} of the list ({', '.join(listed[:_SHOWN])})" if listed else ""
    if channel["dmPolicy"] == "pairing":
        return " and ".join(filter(None, [names, "approved users"]))
    return names if listed == channel["allowFrom"] and names else _ANYONE


def _describe_error(row: Mapping[str, Any]) -> str | None:
    """Return the gateway's last error, else why the tokens were not checked, and when."""
    return row.get("lastError") or (f"{row['unchecked']} ({row['uncheckedAt']})" if row.get("unchecked") else None)


def _format_state(channels: Mapping[str, Any]) -> str:
    """Return a line for each channel, and one for each pairing request."""
    lines: list[str] = []
    rows: dict[str, dict[str, Any]] = {name: row for name, row in channels.items() if isinstance(row, dict)}
    for name, row in rows.items():
        state = "connected" if row["connected"] else _describe_error(row) or "not connected"
        lines.append(f"{name}: {state}, last message {row['lastMessageAt'] or 'unknown'}")
        for one in row["pairingRequests"]:
            who = f"{one['senderName'] or ''} ({one['senderId']})".strip()
            lines.append(f"{name}: {who} asks to write, request {one['requestId'] or 'by its code only'}")
    return "\n".join(lines)


def _print_pairing_hint(server: ServerSession, agent: Mapping[str, Any], channel: str) -> None:
    engines = server.call("GET", "/v0/agents/engines")["engines"]
    abilities = [engine["channels"].get(channel) for engine in engines if engine["id"] == agent["engine"]]
    if any(ability and ability["pairingCodes"] for ability in abilities):
        hint = (
            f"The bot gives strangers a code: `roost channels approve {shlex.quote(agent['name'])} {channel} CODE` "
            "lets them write; --dm-policy open lets anyone."
        )
    else:
        hint = f"The engine gives no codes on {channel}: name the users who may write with --allow-from."
    print_line(hint, error_console)


def _read_token(label: str, file: Path | None) -> str:
    """Read a token from the file, a hidden prompt or standard input, without surrounding white space."""
    if file is not None and str(file) != "-":
        try:
            return file.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            exit_with_error(f"{file} could not be read: {error}", ExitCode.USAGE)
    if sys.stdin.isatty():
        return str(typer.prompt(label.capitalize(), hide_input=True, default="", show_default=False)).strip()
    return sys.stdin.readline(4096).strip()
