"""The `roost` program: its command groups and top-level commands."""

import sys
from typing import Annotated

import typer

from roost import __version__
from roost.cli import (
    agents,
    channels,
    devices,
    domains,
    engines,
    files,
    gateway_domains,
    gateways,
    groups,
    hosts,
    hub,
    keys,
    models,
    payments,
    routes,
    runtime_config,
    scripts,
    secrets,
    server,
    signatures,
    skills,
    snapshots,
    tasks,
    templates,
    vectors,
    webhooks,
)
from roost.cli.apply import apply_fleet
from roost.cli.chat import chat_with_agent
from roost.cli.clone import clone_agent
from roost.cli.copy import copy_files
from roost.cli.dashboard import open_dashboard
from roost.cli.events import print_events
from roost.cli.execute import PASS_THROUGH, exec_command
from roost.cli.facilitator import run_facilitator
from roost.cli.logs import print_logs
from roost.cli.output import ExitCode, print_error
from roost.cli.proxy_config import print_proxy_config
from roost.cli.scrub import scrub_content
from roost.cli.shell import open_shell
from roost.cli.versions import list_versions, update_engine
from roost.core.problem import Problem, ProblemKind
from roost.core.sanitize import is_storable

cli = typer.Typer(
    help="Roost: a self-hosted cloud for AI agents.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
cli.command("up")(server.start_server)
cli.command("apply")(apply_fleet)
cli.command("chat")(chat_with_agent)
cli.command("open")(agents.open_agent)
cli.command("dashboard")(open_dashboard)
cli.command("logs")(print_logs)
cli.command("events")(print_events)
cli.command("exec", context_settings=PASS_THROUGH)(exec_command)
cli.command("shell", context_settings=PASS_THROUGH)(open_shell)
cli.command("cp")(copy_files)
cli.command("clone")(clone_agent)
cli.command("versions")(list_versions)
cli.command("update")(update_engine)
cli.command("doctor")(server.run_doctor)
cli.command("proxy-config")(print_proxy_config)
cli.command("scrub")(scrub_content)
cli.command("facilitator")(run_facilitator)
cli.add_typer(agents.commands, name="agents")
cli.add_typer(channels.commands, name="channels")
cli.add_typer(devices.commands, name="devices")
cli.add_typer(runtime_config.commands, name="config")
cli.add_typer(engines.commands, name="engines")
cli.add_typer(hosts.commands, name="hosts")
cli.add_typer(hub.commands, name="hub")
cli.add_typer(keys.commands, name="keys")
cli.add_typer(models.commands, name="models")
cli.add_typer(routes.commands, name="routes")
cli.add_typer(domains.commands, name="domains")
cli.add_typer(server.api_commands, name="api")
cli.add_typer(skills.commands, name="skills")
cli.add_typer(snapshots.commands, name="snapshots")
cli.add_typer(tasks.commands, name="tasks")
cli.add_typer(templates.commands, name="templates")
cli.add_typer(secrets.commands, name="secrets")
cli.add_typer(scripts.commands, name="scripts")
cli.add_typer(files.commands, name="files")
cli.add_typer(groups.commands, name="groups")
gateways.commands.add_typer(gateway_domains.commands, name="domains")
cli.add_typer(gateways.commands, name="gateways")
cli.add_typer(payments.commands, name="payments")
cli.add_typer(signatures.commands, name="signatures")
cli.add_typer(vectors.commands, name="vectors")
cli.add_typer(webhooks.commands, name="webhooks")


def _print_version(requested: bool) -> None:
    if requested:
        sys.stdout.write(f"roost {__version__}\n")
        raise typer.Exit


@cli.callback()
def root_command(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Roost: a self-hosted cloud for AI agents."""


def run_cli() -> None:
    """Run the command line; print an expected problem as one line and exit with its code."""
    try:
        cli()
    except Problem as problem:
        print_error(problem.message)
        sys.exit(ExitCode.USAGE if problem.kind is ProblemKind.INVALID else ExitCode.FAILED)
    except UnicodeEncodeError:
        if all(map(is_storable, sys.argv)):
            raise
        print_error("An argument is not UTF-8 text.")
        sys.exit(ExitCode.USAGE)
