"""`roost system ...`: show, checks, engines. For the operator, of any server that is reached over HTTP."""

import typer

from roost.cli.client.session import Data, load_session
from roost.cli.output.output import Output, OutputFormat, print_record, print_rows

commands = typer.Typer()
_ENGINE_COLUMNS = ("engine", "latestVersion", "installedVersions", "availableVersions", "outdatedAgents")


@commands.command()
def show(data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Show versions, failing parts, servers, background work, disk and memory (bytes)."""
    state = load_session(data).call("GET", "/v0/system")
    failing = [name for name, status in state["checks"].items() if status != "ok"]
    servers = [f"{host['name']} ({'running' if host['isRunning'] else 'stopped'})" for host in state["hosts"]]
    flat = {f"{part} {name}": value for part in ("operations", "disk", "memory") for name, value in state[part].items()}
    print_record({**state["software"], "failing": failing, "servers": servers, **flat}, output, document=state)


@commands.command("checks")
def list_checks(data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Run the checks of `roost doctor` on the server, and list what they find."""
    print_rows(load_session(data).call("GET", "/v0/system/checks")["checks"], ("status", "part", "detail"), output)


@commands.command("engines")
def list_engines(data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """List the engines with their installed and available versions, and your agents that are behind."""
    engines = load_session(data).call("GET", "/v0/system/engines")["engines"]
    rows = [{**one, "outdatedAgents": [agent["name"] for agent in one["outdatedAgents"]]} for one in engines]
    print_rows(rows, _ENGINE_COLUMNS, output, engines)
