"""A group of commands that are imported when they are used, so that each command loads only what it needs.

The group's own help, and the completion of its commands' names, show summaries and import no command.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from roost.cli.examples import add_examples


@dataclass(frozen=True)
class CommandSource:
    """Place of a command or of a group in the code.

    target: a module of `roost.cli` and its function or `typer.Typer`. summary: the first sentence of the help.
    kind: the class of a command.
    """

    target: str
    summary: str
    kind: type[TyperCommand] = TyperCommand


class LazyCommand(TyperCommand):
    """A command that has not been imported."""

    def __init__(self, name: str, source: CommandSource) -> None:
        super().__init__(name, help=source.summary)
        self._name, self._source = name, source

    def load(self) -> Any:
        """Import the command or group and add examples to its help."""
        module, _, attribute = self._source.target.partition(":")
        found = getattr(import_module(f"roost.cli.{module}"), attribute)
        parent = typer.Typer()
        if isinstance(found, typer.Typer):
            parent.add_typer(found, name=self._name)
        else:
            parent.command(self._name, cls=self._source.kind)(found)
        command = get_group(parent).commands[self._name]
        add_examples(command, (self._name,))
        return command


class LazyGroup(TyperGroup):
    """A group that imports a command at its first use."""

    sources: ClassVar[Mapping[str, CommandSource]]

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for name, source in self.sources.items():
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
