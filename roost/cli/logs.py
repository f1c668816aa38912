"""`roost logs`: the last lines of an agent's logs, or all as they come, over reconnections, until Ctrl-C."""

import json
import sys
import time
from collections.abc import Generator, Iterator
from typing import Annotated, Any
from urllib.parse import urlencode

import typer

from roost.cli.client import Data, Name, ServerSession, session
from roost.cli.output import ExitCode, Output, OutputFormat, errors, fail, say, write

Level = Annotated[
    str | None, typer.Option(help="This level and those above it: trace, debug, info, warn, error, fatal.")
]
Source = Annotated[str | None, typer.Option(help="This source and those under it: `gateway`, `script/build`.")]
_INTERRUPTED = 130  # as a shell shows what SIGINT ended
_WAIT = 1.0
_NOT_ALLOWED = 1008


def logs(
    agent: Name,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with each line as it is written.")] = False,
    level: Level = None,
    source: Source = None,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Print the last 100 lines of an agent's logs; with -f, go on with those that come."""
    here = session(data)
    chosen = urlencode({name: value for name, value in (("level", level), ("source", source)) if value})
    path = f"/v0/agents/{here.agent(agent)['agentId']}/logs" + (f"?{chosen}" if chosen else "")
    if not follow:
        if text := here.call("GET", path)["logs"]:
            write(text + "\n", sys.stdout)
        return
    try:
        for message in _new(_messages(here, path)):
            write(_line(message, output), sys.stdout)
    except KeyboardInterrupt:
        raise typer.Exit(_INTERRUPTED) from None


def _messages(here: ServerSession, path: str) -> Generator[dict[str, Any]]:
    """The messages of one connection after the other."""
    from websockets.exceptions import ConnectionClosed, InvalidStatus
    from websockets.sync.client import connect

    where = here.url.replace("http", "ws", 1) + path
    headers = {"Authorization": f"Bearer {here.token.reveal()}"}
    is_open = False
    while True:
        try:
            with connect(where, additional_headers=headers, proxy=None) as stream:
                is_open = True
                for text in stream:
                    yield json.loads(text)
        except InvalidStatus as refused:
            if refused.response.status_code < 500:
                _refuse(refused.response.status_code, bytes(refused.response.body))
        except ConnectionClosed as closed:
            if closed.rcvd and closed.rcvd.code == _NOT_ALLOWED:
                fail(closed.rcvd.reason, ExitCode.NOT_ALLOWED)
        except (OSError, TimeoutError):
            if not is_open:
                fail(f"No server answers at {here.url}. Start one with `roost up`.", ExitCode.UNREACHABLE)
        say("The stream broke off; trying again ...", errors)
        time.sleep(_WAIT)


def _new(messages: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Without those that a new connection tells again: it begins with the last 100."""
    last, shown = "", list[dict[str, Any]]()
    for message in messages:
        moment = str(message["timestamp"])
        if moment < last or (moment == last and message in shown):
            continue
        shown = [*shown, message] if moment == last else [message]
        last = moment
        yield message


def _line(message: dict[str, Any], form: OutputFormat) -> str:
    if form is OutputFormat.JSON:
        return json.dumps(message, ensure_ascii=sys.stdout.isatty()) + "\n"
    return "{timestamp}  {level:<5}  {source:<22}  {message}\n".format_map(message)


def _refuse(status: int, body: bytes) -> None:
    try:
        told = str(json.loads(body)["error"])
    except (ValueError, LookupError, TypeError):
        told = f"The server answered {status}."
    fail(
        told,
        {401: ExitCode.NOT_ALLOWED, 403: ExitCode.NOT_ALLOWED, 404: ExitCode.NOT_FOUND}.get(status, ExitCode.FAILED),
    )
