"""`roost logs`: prints the last lines of an agent's logs, or follows them until Ctrl-C and reconnects as needed."""

import sys
from collections.abc import Iterator
from typing import Annotated, Any
from urllib.parse import urlencode

import typer

from roost.cli.arguments import AgentName
from roost.cli.client.message_stream import print_messages, receive_messages
from roost.cli.client.session import Data, load_session
from roost.cli.output.output import Output, OutputFormat, print_as_document, write_output

Level = Annotated[str | None, typer.Option(help="Lowest level to show: trace, debug, info, warn, error, fatal.")]
Source = Annotated[str | None, typer.Option(help="A source with its children: `gateway`, `script/build`.")]
_LINE = "{timestamp}  {level:<5}  {source:<22}  {message}"


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
    path = f"{server.agent_path(agent)}/logs" + (f"?{query}" if query else "")
    if follow:
        print_messages(_skip_repeated(receive_messages(server, lambda: path, "log")), output, _LINE.format_map)
        return
    answer = server.call("GET", path)
    if not print_as_document(answer, output) and (text := answer["logs"]):
        write_output(f"{text}\n", sys.stdout)


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
