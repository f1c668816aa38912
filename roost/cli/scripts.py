"""`roost scripts ...`: show, retry."""

import typer

from roost.cli.agents import Name
from roost.cli.client import Data, session
from roost.cli.output import Output, OutputFormat, say, show_json, show_rows

nouns = typer.Typer(help="The build and start scripts of an agent's manifest.", no_args_is_help=True)
_COLUMNS = ("script", "state", "exitCode", "startedAt", "finishedAt", "reason")


@nouns.command()
def show(agent: Name, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Show what became of an agent's scripts."""
    here = session(data)
    scripts = here.call("GET", f"/v0/agents/{here.agent(agent)['agentId']}/scripts")
    if output is OutputFormat.JSON:
        show_json(scripts)
        return
    show_rows([{"script": name, **script} for name, script in scripts.items()], _COLUMNS, output)


@nouns.command()
def retry(agent: Name, data: Data = None) -> None:
    """Run an agent's build and start scripts anew; returns at once."""
    here = session(data)
    say(here.call("POST", f"/v0/agents/{here.agent(agent)['agentId']}/scripts/retry")["message"])
