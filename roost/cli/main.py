"""The `roost` program: its command groups and top-level commands."""

import sys
from collections.abc import Mapping
from typing import Annotated, Protocol

import typer
from rich.markup import escape
from typer.main import get_command

from roost import __version__
from roost.cli import (
    agents,
    channels,
    contexts,
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
    pins,
    routes,
    runtime_config,
    scripts,
    secrets,
    server,
    signatures,
    skills,
    snapshots,
    swaps,
    system,
    tasks,
    templates,
    vectors,
    webhooks,
    workspace_files,
)
from roost.cli.apply import apply_fleet
from roost.cli.chat import chat_with_agent
from roost.cli.clone import clone_agent
from roost.cli.completion import complete_contexts
from roost.cli.context_file import select_context
from roost.cli.copy import copy_files
from roost.cli.dashboard import open_dashboard
from roost.cli.events import print_events
from roost.cli.examples import examples_of
from roost.cli.execute import PASS_THROUGH, exec_command
from roost.cli.facilitator import run_facilitator
from roost.cli.file_links import create_link, create_upload_link
from roost.cli.login import log_in, log_out
from roost.cli.logs import print_logs
from roost.cli.output import ExitCode, print_error
from roost.cli.proxy_config import print_proxy_config
from roost.cli.scrub import scrub_content
from roost.cli.shell import open_shell
from roost.cli.usage import print_usage
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
cli.command("login")(log_in)
cli.command("logout")(log_out)
cli.command("chat")(chat_with_agent)
cli.command("open")(agents.open_agent)
cli.command("dashboard")(open_dashboard)
cli.command("logs")(print_logs)
cli.command("events")(print_events)
cli.command("exec", context_settings=PASS_THROUGH)(exec_command)
cli.command("shell", context_settings=PASS_THROUGH)(open_shell)
cli.command("cp")(copy_files)
cli.command("clone")(clone_agent)
cli.command("usage")(print_usage)
cli.command("versions")(list_versions)
cli.command("update")(update_engine)
cli.command("doctor")(server.run_doctor)
cli.command("proxy-config")(print_proxy_config)
cli.command("scrub")(scrub_content)
cli.command("facilitator")(run_facilitator)
cli.add_typer(agents.commands, name="agents")
cli.add_typer(channels.commands, name="channels")
cli.add_typer(contexts.commands, name="contexts")
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
cli.add_typer(system.commands, name="system")
cli.add_typer(tasks.commands, name="tasks")
cli.add_typer(templates.commands, name="templates")
cli.add_typer(secrets.commands, name="secrets")
cli.add_typer(scripts.commands, name="scripts")
files.commands.command("link")(create_link)
files.commands.command("upload-link")(create_upload_link)
cli.add_typer(files.commands, name="files")
cli.add_typer(groups.commands, name="groups")
gateways.commands.add_typer(gateway_domains.commands, name="domains")
cli.add_typer(gateways.commands, name="gateways")
cli.add_typer(pins.commands, name="pins")
cli.add_typer(payments.commands, name="payments")
cli.add_typer(signatures.commands, name="signatures")
cli.add_typer(swaps.commands, name="swaps")
cli.add_typer(vectors.commands, name="vectors")
cli.add_typer(webhooks.commands, name="webhooks")
cli.add_typer(workspace_files.commands, name="workspace")


def _print_version(requested: bool) -> None:
    if requested:
        sys.stdout.write(f"roost {__version__}\n")
        raise typer.Exit


@cli.callback()
def root_command(
    version: Annotated[  # noqa: ARG001 - its callback prints it
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    context: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Server to talk to: a context of `roost login`, or `local` for the data folder.",
            autocompletion=complete_contexts,
        ),
    ] = None,
) -> None:
    """Roost: a self-hosted cloud for AI agents."""
    select_context(context)


class HelpedCommand(Protocol):
    """A command of the program, whose help ends in an epilog."""

    epilog: str | None

    def __call__(self, *, prog_name: str) -> None: ...


def create_program() -> HelpedCommand:
    """Return all commands, with their examples below their help."""
    program = get_command(cli)
    _add_examples(program, ())
    return program


def run_cli() -> None:
    """Run the command line; print an expected problem as one line and exit with its code."""
    program = create_program()
    try:
        program(prog_name="roost")
    except Problem as problem:
        print_error(problem.message)
        sys.exit(ExitCode.USAGE if problem.kind is ProblemKind.INVALID else ExitCode.FAILED)
    except UnicodeEncodeError:
        if all(map(is_storable, sys.argv)):
            raise
        print_error("An argument is not UTF-8 text.")
        sys.exit(ExitCode.USAGE)


def _add_examples(command: HelpedCommand, path: tuple[str, ...]) -> None:
    """Show examples below the help of a command and of all below it."""
    below: Mapping[str, HelpedCommand] = getattr(command, "commands", {})
    if path:
        command.epilog = escape("\n".join(["Examples:", *examples_of(path, is_noun=bool(below))]))
    for name, one in below.items():
        _add_examples(one, (*path, name))
