"""`roost exec` runs a command in an agent's container; `roost scripts` reruns the scripts of its manifest."""

import json
import os
import shlex
import sys
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlencode

import typer

from roost.cli.arguments import AgentName
from roost.cli.client.session import Data, ServerSession, load_session
from roost.cli.output.output import (
    SIGINT_EXIT_CODE,
    ExitCode,
    Output,
    OutputFormat,
    OutputWriter,
    exit_with_error,
    print_document,
    print_error,
    print_line,
    print_rows,
)

if TYPE_CHECKING:
    from websockets.sync.client import ClientConnection


script_commands = typer.Typer()
_SCRIPT_COLUMNS = ("script", "state", "exitCode", "startedAt", "finishedAt", "reason")
_STDIN, _STDOUT = b"\0", 1  # channels of the stream
_CHUNK_BYTES = 15 * 1024  # the server takes messages of up to 16 KiB


def exec_command(
    agent: AgentName,
    command: Annotated[
        list[str], typer.Argument(metavar="COMMAND", help="The command; a single argument is run by a shell.")
    ],
    interactive: Annotated[bool, typer.Option("--interactive", "-i", help="Pass standard input to it.")] = False,
    cwd: Annotated[str | None, typer.Option(help="Working folder in the workspace.")] = None,
    timeout: Annotated[int, typer.Option(min=1, max=600, help="Stop the command after this many seconds.")] = 60,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Run a command in an agent's container and exit with its exit code. Options go before COMMAND."""
    if interactive and output is not OutputFormat.TABLE:
        exit_with_error("--interactive streams the output, which has no form in JSON.", ExitCode.USAGE)
    server = load_session(data)
    path = f"{server.agent_path(agent)}/console/exec"
    request = {"command": join_command(command), "timeoutSeconds": timeout} | ({"cwd": cwd} if cwd is not None else {})
    if output is not OutputFormat.TABLE:
        result = server.call("POST", path, request, timeout_seconds=timeout + 30)
        print_document(result, output)
    else:
        query = urlencode(request | ({"stdin": "true"} if interactive else {}))
        result = _stream_command(server, f"{path}?{query}", interactive)
        if result["timedOut"]:
            print_error(f"The command was stopped after {timeout} s; `--timeout` changes the limit.")
    raise typer.Exit(result["exitCode"])


@script_commands.command("show")
def show_scripts(agent: AgentName, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Show the status of an agent's scripts."""
    server = load_session(data)
    scripts = server.call("GET", f"{server.agent_path(agent)}/scripts")
    rows = ({"script": name, **script} for name, script in scripts.items())
    print_rows(rows, _SCRIPT_COLUMNS, output, scripts)


@script_commands.command("retry")
def retry_scripts(agent: AgentName, data: Data = None) -> None:
    """Rerun an agent's build and start scripts in the background."""
    server = load_session(data)
    print_line(server.call("POST", f"{server.agent_path(agent)}/scripts/retry")["message"])


def join_command(command: list[str]) -> str:
    """Return a shell's line for a command as it was typed: one argument is a line already."""
    arguments = command[1:] if command[0] == "--" else command
    return arguments[0] if len(arguments) == 1 else shlex.join(arguments)


def _stream_command(server: ServerSession, path: str, interactive: bool) -> dict[str, Any]:
    """Connect a command with this process, and return its end."""
    from websockets.exceptions import ConnectionClosed, InvalidStatus

    from roost.cli.client.websocket import exit_with_refusal, open_websocket

    try:
        with open_websocket(server, path) as stream:
            if interactive:
                Thread(target=_send_stdin, args=(stream,), daemon=True).start()
            return _print_output(stream)
    except KeyboardInterrupt:
        raise typer.Exit(SIGINT_EXIT_CODE) from None  # the server ends the command of a closed stream
    except InvalidStatus as refused:
        exit_with_refusal(refused)
    except ConnectionClosed as closed:
        reason = closed.rcvd.reason if closed.rcvd else ""
        exit_with_error(f"The connection ended before the command: {reason or 'no reason given'}.")
    except BrokenPipeError:
        raise  # the reader of the output left; the command line ends quietly
    except OSError as error:
        exit_with_error(f"The connection to {server.url} failed: {error}.", ExitCode.UNREACHABLE)


def _print_output(stream: "ClientConnection") -> dict[str, Any]:
    """Write the command's output and errors as they come, and return the message of its end."""
    out, err = OutputWriter(sys.stdout), OutputWriter(sys.stderr)
    while True:
        message = stream.recv()
        if isinstance(message, str):
            return json.loads(message)
        (out if message[0] == _STDOUT else err).write(message[1:])


def _send_stdin(stream: "ClientConnection") -> None:
    """Send standard input, and an empty message for its end."""
    from websockets.exceptions import ConnectionClosed

    with suppress(ConnectionClosed):  # the command ended; the main thread knows
        while chunk := os.read(sys.stdin.fileno(), _CHUNK_BYTES):
            stream.send(_STDIN + chunk)
        stream.send(_STDIN)
