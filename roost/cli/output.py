"""How commands print: tables for people, JSON for scripts, errors on standard error with an exit code that tells.

Whatever is printed may have been written by an agent: it neither styles nor steers the terminal.
"""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from enum import IntEnum, StrEnum
from typing import Annotated, Any, NoReturn, TextIO

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from roost.core.sanitize import sanitize_lines

_WIDE = 1000  # what is no terminal gets whole lines, one a record
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\d\.\d+Z")


def _console(stream: TextIO, *, stderr: bool = False) -> Console:
    return Console(stderr=stderr, highlight=False, emoji=False, width=None if stream.isatty() else _WIDE)


screen = _console(sys.stdout)
errors = _console(sys.stderr, stderr=True)


class ExitCode(IntEnum):
    """0 is success; these are the others."""

    FAILED = 1
    USAGE = 2
    UNREACHABLE = 3
    NOT_ALLOWED = 4
    NOT_FOUND = 5


class OutputFormat(StrEnum):
    TABLE = "table"
    JSON = "json"


Output = Annotated[OutputFormat, typer.Option("--output", "-o", help="How to print records.")]


def fail(message: str, code: ExitCode = ExitCode.FAILED) -> NoReturn:
    """Leave the program with an error message."""
    complain(message)
    raise typer.Exit(code)


def complain(message: str) -> None:
    errors.print(Text.assemble(("Error: ", "red"), sanitize_lines(message)))


def say(text: str, console: Console = screen) -> None:
    """A line for people."""
    console.print(Text(sanitize_lines(text)))


def say_field(name: str, value: str, width: int = 0, style: str = "bold") -> None:
    """A name in a column of its own, and what it stands for beside it, all its lines."""
    column = f"{name:<{width}}  "
    screen.print(Text.assemble((column, style), sanitize_lines(value).replace("\n", "\n" + " " * len(column))))


def write(text: str, stream: TextIO) -> None:
    """What an agent or its commands wrote: to the byte for a pipe or a file, harmless on a terminal."""
    stream.write(sanitize_lines(text) if stream.isatty() else text)
    stream.flush()


def show_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=sys.stdout.isatty()) + "\n")


def show_rows(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], form: OutputFormat) -> None:
    """Records as a table of some of their fields, or whole as JSON."""
    if form is OutputFormat.JSON:
        show_json(list(rows))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(_heading(column), overflow="fold")
    for row in rows:
        table.add_row(*(Text(sanitize_lines(_MOMENT.sub(r"\1 \2", _cell(row.get(column))))) for column in columns))
    screen.print(table)


def show_record(record: Mapping[str, Any], form: OutputFormat) -> None:
    """One record, a line a field; empty ones are left out."""
    if form is OutputFormat.JSON:
        show_json(record)
        return
    fields = {name: text for name, value in record.items() if (text := _cell(value))}
    width = max(map(len, fields), default=0)
    for name, text in fields.items():
        say_field(name, text, width)


def _heading(field: str) -> str:
    """`createdAt` and `created_at` -> `CREATED AT`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", field).upper()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(map(_cell, value))  # pyright: ignore[reportUnknownArgumentType] - JSON
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
