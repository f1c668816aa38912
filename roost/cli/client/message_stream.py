"""Streams of JSON messages for commands that follow: received, reconnected, printed until Ctrl-C."""

import json
import sys
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from time import sleep
from typing import Any

import typer

from roost.cli.client.session import ServerSession, connection_errors, open_http_client
from roost.cli.output.output import (
    SIGINT_EXIT_CODE,
    ExitCode,
    OutputFormat,
    error_console,
    exit_with_error,
    print_line,
    print_message,
    write_output,
)
from roost.core.event_stream_decoder import ServerSentEvent, decode_events

_RECONNECT_SECONDS, _MAX_RECONNECT_SECONDS = 1.0, 30.0
_SILENCE_SECONDS = 60.0  # the server sends a comment after 15 seconds without an event
_POLICY_VIOLATION = 1008  # WebSocket close code (RFC 6455)


@dataclass
class _Reconnection:
    """Reconnects a stream, with pauses that grow until an attempt succeeds. Reports each interruption once."""

    name: str
    was_open: bool = False
    _failures: int = 0

    def mark_open(self) -> None:
        self.was_open, self._failures = True, 0

    def wait(self) -> None:
        if not self._failures:
            print_line(f"The {self.name} stream ended; reconnecting ...", error_console)
        doublings = min(self._failures, 9)  # more would be too large for a float after hours
        sleep(min(_RECONNECT_SECONDS * 2**doublings, _MAX_RECONNECT_SECONDS))
        self._failures += 1


def receive_messages(server: ServerSession, get_path: Callable[[], str], name: str) -> Generator[dict[str, Any]]:
    """Yield the messages of a WebSocket; when it ends, say so and connect to the path that is then returned.

    Exits if the server refuses it, or the first connection fails. name: of the stream, as in "The log stream ended".
    """
    from websockets.exceptions import ConnectionClosed, InvalidStatus

    from roost.cli.client.websocket import exit_with_refusal, open_websocket

    reconnection = _Reconnection(name)
    while True:
        try:
            with open_websocket(server, get_path()) as stream:
                reconnection.mark_open()
                for text in stream:
                    yield json.loads(text)
        except InvalidStatus as refused:
            if not reconnection.was_open or refused.response.status_code < 500:
                exit_with_refusal(refused)
        except ConnectionClosed as closed:
            if closed.rcvd and closed.rcvd.code == _POLICY_VIOLATION:
                exit_with_error(closed.rcvd.reason, ExitCode.NOT_ALLOWED)
        except OSError as error:
            if not reconnection.was_open:
                exit_with_error(f"The connection to {server.url} failed: {error}.", ExitCode.UNREACHABLE)
        reconnection.wait()


def receive_server_events(
    server: ServerSession, path: str, name: str, after_gap: dict[str, Any] | None = None
) -> Generator[dict[str, Any]]:
    """Yield the data of server-sent events; when their stream ends, say so, connect again and yield any `after_gap`.

    Exits if the server refuses it, the first connection fails, or an event reports an error.
    """
    import httpx2 as httpx  # slow to import

    reconnection = _Reconnection(name)
    while True:
        try:
            with open_http_client(server, _SILENCE_SECONDS) as client, client.stream("GET", path) as response:
                if not reconnection.was_open or response.status_code < 500:
                    server.check_stream(response)
                    if reconnection.was_open and after_gap is not None:
                        yield after_gap
                    reconnection.mark_open()
                    yield from _parse_server_events(decode_events(response.iter_bytes()))
        except httpx.HTTPError:
            if not reconnection.was_open:
                with connection_errors(server.url):
                    raise
        reconnection.wait()


def _parse_server_events(events: Iterable[ServerSentEvent]) -> Generator[dict[str, Any]]:
    for event in events:
        message: dict[str, Any] = json.loads(event.data)
        if "error" in message:
            exit_with_error(message["error"])
        yield message


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
