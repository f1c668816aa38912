"""The `roost` program: its nouns and the few verbs without one."""

import sys
from typing import Annotated

import typer

from roost import __version__
from roost.cli import (
    agents,
    channels,
    devices,
    engines,
    files,
    gateways,
    groups,
    keys,
    runtime_config,
    scripts,
    secrets,
    server,
    signatures,
    tasks,
    webhooks,
)
from roost.cli.chat import chat
from roost.cli.execute import AS_TYPED, execute
from roost.cli.logs import logs
from roost.cli.output import ExitCode, complain
from roost.cli.scrub import scrub
from roost.cli.versions import update, versions
from roost.core.problem import Problem, ProblemKind

cli = typer.Typer(
    help="Roost: a self-hosted cloud for AI agents.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
cli.command()(server.up)
cli.command()(chat)
cli.command()(logs)
cli.command(name="exec", context_settings=AS_TYPED)(execute)
cli.command()(versions)
cli.command()(update)
cli.command()(server.doctor)
cli.command()(scrub)
cli.command()(server.routes)
cli.add_typer(agents.nouns, name="agents")
cli.add_typer(channels.nouns, name="channels")
cli.add_typer(devices.nouns, name="devices")
cli.add_typer(runtime_config.nouns, name="config")
cli.add_typer(engines.nouns, name="engines")
cli.add_typer(keys.nouns, name="keys")
cli.add_typer(tasks.nouns, name="tasks")
cli.add_typer(secrets.nouns, name="secrets")
cli.add_typer(scripts.nouns, name="scripts")
cli.add_typer(files.nouns, name="files")
cli.add_typer(groups.nouns, name="groups")
cli.add_typer(gateways.nouns, name="gateways")
cli.add_typer(signatures.nouns, name="signatures")
cli.add_typer(webhooks.nouns, name="webhooks")


def _version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"roost {__version__}\n")
        raise typer.Exit


@cli.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Roost: a self-hosted cloud for AI agents."""


def app() -> None:
    """Run the command line; expected problems end in one line and an exit code, not in a stack."""
    try:
        cli()
    except Problem as problem:
        complain(problem.message)
        sys.exit(ExitCode.USAGE if problem.kind is ProblemKind.INVALID else ExitCode.FAILED)
