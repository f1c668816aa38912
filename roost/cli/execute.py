"""`roost exec`: a command in an agent's container, its output here, its exit code as ours."""

import shlex
import sys
from typing import Annotated

import typer

from roost.cli.client import Data, Name, session
from roost.cli.output import Output, OutputFormat, complain, show_json, write

AS_TYPED = {"allow_interspersed_args": False}
"""What follows the agent belongs to the command, options too."""


def execute(
    agent: Name,
    command: Annotated[
        list[str], typer.Argument(metavar="COMMAND...", help="What follows the agent; a single word is a shell's line.")
    ],
    cwd: Annotated[str | None, typer.Option(help="A folder of the workspace.")] = None,
    timeout: Annotated[int, typer.Option(min=1, max=600, help="End it after so many seconds.")] = 60,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Run a command in an agent's container and leave with its exit code. Options go before AGENT."""
    here = session(data)
    words = command[1:] if command[0] == "--" else command
    line = words[0] if len(words) == 1 else shlex.join(words)
    order = {"command": line, "cwd": cwd, "timeoutSeconds": timeout}
    agent_id = here.agent(agent)["agentId"]
    result = here.call("POST", f"/v0/agents/{agent_id}/console/exec", order, patience=timeout + 30)
    if output is OutputFormat.JSON:
        show_json(result)
    else:
        write(result["stdout"], sys.stdout)
        write(result["stderr"], sys.stderr)
        if result["timedOut"]:
            complain(f"The command was ended after {timeout} s; `--timeout` gives it more.")
        if result["truncated"]:
            complain("The output was cut: it is longer than 1 MiB.")
    raise typer.Exit(result["exitCode"])
