"""`roost scripts ...`: show, retry."""

import typer

from roost.cli.arguments import AgentName
from roost.cli.client.session import Data, load_session
from roost.cli.output.output import Output, OutputFormat, print_line, print_rows

commands = typer.Typer()
_COLUMNS = ("script", "state", "exitCode", "startedAt", "finishedAt", "reason")


@commands.command()
def show(agent: AgentName, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Show the status of an agent's scripts."""
    server = load_session(data)
    scripts = server.call("GET", f"{server.agent_path(agent)}/scripts")
    print_rows([{"script": name, **script} for name, script in scripts.items()], _COLUMNS, output, scripts)


@commands.command()
def retry(agent: AgentName, data: Data = None) -> None:
    """Rerun an agent's build and start scripts in the background."""
    server = load_session(data)
    print_line(server.call("POST", f"{server.agent_path(agent)}/scripts/retry")["message"])
