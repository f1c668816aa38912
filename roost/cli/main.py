"""The `roost` program: its top-level commands and its groups of commands."""

import sys
from importlib import import_module
from typing import Annotated, Any, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from roost import __version__
from roost.cli.client.context_file import select_context
from roost.cli.commands import COMMANDS, CommandSource
from roost.cli.completion import complete_contexts
from roost.cli.examples import add_examples
from roost.cli.output.output import ExitCode, print_error
from roost.core.problem import Problem, ProblemKind
from roost.core.sanitize import is_storable


class LazyCommand(TyperCommand):
    """A command that has not been imported."""

    def __init__(self, name: str, source: CommandSource) -> None:
        super().__init__(name, help=source.summary)
        self._name, self._source = name, source

    def load(self) -> Any:
        """Import the command or group and add examples to its help."""
        module, _, attribute = self._source.target.partition(":")
        found = getattr(import_module(f"roost.cli.{module}"), attribute or "commands")
        parent = typer.Typer()
        if isinstance(found, typer.Typer):
            parent.add_typer(found, name=self._name, help=self._source.summary, no_args_is_help=True)
        else:
            parent.command(self._name, cls=self._source.kind)(found)
        command: Any = get_group(parent).commands[self._name]
        add_examples(command, (self._name,))
        return command


class LazyGroup(TyperGroup):
    """A group that imports a command at its first use."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for name, source in COMMANDS.items():
            self.add_command(LazyCommand(name, source))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        return name, self._load(name, command), rest

    def load_commands(self) -> None:
        """Import all commands."""
        for name, command in list(self.commands.items()):
            self._load(name, command)

    def _load(self, name: str | None, command: Any) -> Any:
        if name is None or not isinstance(command, LazyCommand):
            return command
        self.commands[name] = command.load()
        return self.commands[name]


cli = typer.Typer(
    cls=LazyGroup,
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
