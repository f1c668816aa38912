"""Streams of JSON messages for `roost logs`, `roost events` and watches: received, reconnected, printed."""

import json
import sys
import time
from collections.abc import Callable, Generator, Iterable
from typing import Any

import typer

from roost.cli.client import ServerSession
from roost.cli.output import (
    SIGINT_EXIT_CODE,
    ExitCode,
    OutputFormat,
    error_console,
    exit_with_error,
    print_line,
    print_message,
    write_output,
)

_RECONNECT_SECONDS = 1.0
_SILENCE_SECONDS = 60.0  # the server sends a comment after 15 seconds without a change
_POLICY_VIOLATION = 1008  # WebSocket close code (RFC 6455)


def receive_messages(server: ServerSession, get_path: Callable[[], str], name: str) -> Generator[dict[str, Any]]:
    """Yield the messages of a WebSocket; when it ends, say so and connect to the path that is then returned.

    Exits if the server refuses it, or the first connection fails. name: of the stream, as in "The log stream ended".
    """
    from websockets.exceptions import ConnectionClosed, InvalidStatus

    from roost.cli.websocket import exit_with_refusal, open_websocket

    is_open = False
    while True:
        try:
            with open_websocket(server, get_path()) as stream:
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
        print_line(f"The {name} stream ended; reconnecting ...", error_console)
        time.sleep(_RECONNECT_SECONDS)


def print_messages(
    messages: Iterable[dict[str, Any]], form: OutputFormat, format_line: Callable[[dict[str, Any]], str]
) -> None:
    """Print messages as lines, or as documents, until they end. Exits as shells report it at Ctrl-C."""
    try:
        for message in messages:
            if form is OutputFormat.TABLE:
                write_output(f"{format_line(message)}\n", sys.stdout)
            else:
                print_message(message, form)
    except KeyboardInterrupt:
        raise typer.Exit(SIGINT_EXIT_CODE) from None


def receive_changes(server: ServerSession, path: str) -> Generator[dict[str, Any]]:
    """Yield the events of a stream of server-sent events. Exits if it reports an error."""
    with server.stream(path, timeout_seconds=_SILENCE_SECONDS) as response:
        for line in response.iter_lines():
            if line.startswith("data:"):
                event: dict[str, Any] = json.loads(line.removeprefix("data:"))
                if "error" in event:
                    exit_with_error(event["error"])
                yield event
    exit_with_error("The server ended the stream of changes: run the command again.", ExitCode.UNREACHABLE)
