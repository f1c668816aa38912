"""How commands print: tables for people, JSON for scripts, errors on standard error with an exit code that tells."""

import json
import sys
from collections.abc import Mapping, Sequence
from enum import IntEnum, StrEnum
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.table import Table

_WIDE = 1000  # what is no terminal gets whole lines, one a record

screen = Console(highlight=False, width=None if sys.stdout.isatty() else _WIDE)
errors = Console(stderr=True, highlight=False)


class Exit(IntEnum):
    """0 is success; these are the others."""

    FAILED = 1
    USAGE = 2
    UNREACHABLE = 3
    NOT_ALLOWED = 4
    NOT_FOUND = 5


class Form(StrEnum):
    TABLE = "table"
    JSON = "json"


Output = Annotated[Form, typer.Option("--output", "-o", help="How to print records.")]


def fail(message: str, code: Exit = Exit.FAILED) -> NoReturn:
    errors.print(f"[red]Error:[/red] {_plain(message)}")
    raise typer.Exit(code)


def show_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def show_rows(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], form: Form) -> None:
    """Records as a table of some of their fields, or whole as JSON."""
    if form is Form.JSON:
        show_json(list(rows))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column.upper(), overflow="fold")
    for row in rows:
        table.add_row(*(_plain(_cell(row.get(column))) for column in columns))
    screen.print(table)


def show_record(record: Mapping[str, Any], form: Form) -> None:
    """One record, a line a field."""
    if form is Form.JSON:
        show_json(record)
        return
    width = max(map(len, record), default=0)
    for name, value in record.items():
        screen.print(f"[bold]{name:<{width}}[/bold]  {_plain(_cell(value))}")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(map(_cell, value))  # pyright: ignore[reportUnknownArgumentType] - JSON
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _plain(text: str) -> str:
    """What agents wrote must neither style nor steer the terminal."""
    cleaned = "".join(sign if sign.isprintable() or sign in "\n\t" else "?" for sign in text)
    return cleaned.replace("[", r"\[")
