"""`roost logs`: prints the last lines of an agent's logs, or follows them until Ctrl-C and reconnects as needed."""

import json
import sys
import time
from collections.abc import Generator, Iterator
from typing import Annotated, Any
from urllib.parse import urlencode

import typer

from roost.cli.client import AgentName, Data, ServerSession, load_session
from roost.cli.output import (
    SIGINT_EXIT_CODE,
    ExitCode,
    Output,
    OutputFormat,
    error_console,
    exit_with_error,
    print_line,
    write_output,
)

Level = Annotated[str | None, typer.Option(help="Lowest level to show: trace, debug, info, warn, error, fatal.")]
Source = Annotated[str | None, typer.Option(help="A source with its children: `gateway`, `script/build`.")]
_RECONNECT_SECONDS = 1.0
_POLICY_VIOLATION = 1008  # WebSocket close code (RFC 6455)


def print_logs(
    agent: AgentName,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Print new lines as they are written.")] = False,
    level: Level = None,
    source: Source = None,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Print the last 100 lines of an agent's logs; with -f, follow them."""
    server = load_session(data)
    query = urlencode({name: value for name, value in (("level", level), ("source", source)) if value})
    path = f"/v0/agents/{server.find_agent(agent)['agentId']}/logs" + (f"?{query}" if query else "")
    if not follow:
        if text := server.call("GET", path)["logs"]:
            write_output(text + "\n", sys.stdout)
        return
    try:
        for message in _skip_repeated(_messages(server, path)):
            write_output(_format_line(message, output), sys.stdout)
    except KeyboardInterrupt:
        raise typer.Exit(SIGINT_EXIT_CODE) from None


def _messages(server: ServerSession, path: str) -> Generator[dict[str, Any]]:
    """Yield log messages and reconnect when the stream ends."""
    from websockets.exceptions import ConnectionClosed, InvalidStatus

    from roost.cli.websocket import exit_with_refusal, open_websocket

    is_open = False
    while True:
        try:
            with open_websocket(server, path) as stream:
                is_open = True
                for text in stream:
                    yield json.loads(text)
        except InvalidStatus as refused:
            if not is_open or refused.response.status_code < 500:
                exit_with_refusal(refused)
        except ConnectionClosed as closed:
            if closed.rcvd and closed.rcvd.code == _POLICY_VIOLATION:
                exit_with_error(closed.rcvd.reason, ExitCode.NOT_ALLOWED)
        except OSError as error:
            if not is_open:
                exit_with_error(f"The connection to {server.url} failed: {error}.", ExitCode.UNREACHABLE)
        print_line("The log stream ended; reconnecting ...", error_console)
        time.sleep(_RECONNECT_SECONDS)


def _skip_repeated(messages: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Drop messages that were already shown: each connection starts with the last 100."""
    last, shown = "", list[dict[str, Any]]()
    for message in messages:
        timestamp = str(message["timestamp"])
        if timestamp < last or (timestamp == last and message in shown):
            continue
        shown = [*shown, message] if timestamp == last else [message]
        last = timestamp
        yield message


def _format_line(message: dict[str, Any], form: OutputFormat) -> str:
    if form is OutputFormat.JSON:
        return json.dumps(message, ensure_ascii=sys.stdout.isatty()) + "\n"
    return "{timestamp}  {level:<5}  {source:<22}  {message}\n".format_map(message)
