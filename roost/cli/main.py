"""The `roost` program: its top-level commands and its groups of commands."""

import sys
from typing import Annotated, cast

import typer
from typer.main import get_command

from roost import __version__
from roost.cli.client.context_file import select_context
from roost.cli.commands import COMMANDS
from roost.cli.completion import complete_contexts
from roost.cli.lazy_group import LazyGroup
from roost.cli.output.output import ExitCode, print_error
from roost.core.problem import Problem, ProblemKind
from roost.core.sanitize import is_storable


class _RootGroup(LazyGroup):
    sources = COMMANDS


cli = typer.Typer(
    cls=_RootGroup,
    help="Roost: a self-hosted cloud for AI agents.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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


def create_program() -> LazyGroup:
    """Return the group of all commands."""
    return cast("LazyGroup", get_command(cli))


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
