"""`roost exec`: runs a command in an agent's container and exits with its exit code."""

import shlex
import sys
from typing import Annotated

import typer

from roost.cli.client import AgentName, Data, load_session
from roost.cli.output import Output, OutputFormat, print_error, print_json, write_output

PASS_THROUGH = {"allow_interspersed_args": False}
"""Context settings that leave options after AGENT to the command."""


def exec_command(
    agent: AgentName,
    command: Annotated[
        list[str], typer.Argument(metavar="COMMAND...", help="The command; a single argument is run by a shell.")
    ],
    cwd: Annotated[str | None, typer.Option(help="Working folder in the workspace.")] = None,
    timeout: Annotated[int, typer.Option(min=1, max=600, help="Stop the command after this many seconds.")] = 60,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Run a command in an agent's container and exit with its exit code. Options go before AGENT."""
    server = load_session(data)
    arguments = command[1:] if command[0] == "--" else command
    line = arguments[0] if len(arguments) == 1 else shlex.join(arguments)
    request = {"command": line, "cwd": cwd, "timeoutSeconds": timeout}
    agent_id = server.find_agent(agent)["agentId"]
    result = server.call("POST", f"/v0/agents/{agent_id}/console/exec", request, timeout_seconds=timeout + 30)
    if output is OutputFormat.JSON:
        print_json(result)
    else:
        write_output(result["stdout"], sys.stdout)
        write_output(result["stderr"], sys.stderr)
        if result["timedOut"]:
            print_error(f"The command was stopped after {timeout} s; `--timeout` changes the limit.")
        if result["truncated"]:
            print_error("The output was truncated at 1 MiB.")
    raise typer.Exit(result["exitCode"])
