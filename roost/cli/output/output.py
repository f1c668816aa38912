"""Output of commands: tables for people, JSON and YAML for scripts, errors on standard error with an exit code.

An agent may have written any of the text, so control sequences are removed before it reaches a terminal.
"""

import codecs
import difflib
import json
import re
import shlex
import sys
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn, TextIO

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from roost.core import clock
from roost.core.sanitize import sanitize_lines

_PIPE_WIDTH = 1000  # columns, so that a script gets one line per record
_TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\d\.\d+Z")


def _console(stream: TextIO, *, stderr: bool = False) -> Console:
    return Console(stderr=stderr, highlight=False, emoji=False, width=None if stream.isatty() else _PIPE_WIDTH)


console = _console(sys.stdout)
error_console = _console(sys.stderr, stderr=True)


class ExitCode(IntEnum):
    """Exit codes of failed commands; 0 is success."""

    FAILED = 1
    USAGE = 2
    UNREACHABLE = 3
    NOT_ALLOWED = 4
    NOT_FOUND = 5
    DIFFERENT = 6


SIGINT_EXIT_CODE = 130  # 128 + SIGINT, as shells report it


class OutputFormat(StrEnum):
    """Formats of records. Documents have all fields by the names of the API; a table has some, in words."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


Output = Annotated[OutputFormat, typer.Option("--output", "-o", help="How to print records.")]


FleetOutput = Annotated[
    OutputFormat, typer.Option("--output", "-o", help="How to print records; `yaml` is what `roost apply` takes.")
]


Yes = Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation.")]


def confirm_change(question: str, yes: bool) -> None:
    """Ask a question unless the answer was given with `--yes`. Exits if the answer is no, or if no one can answer."""
    if yes:
        return
    error_console.print(Text(f"{sanitize_lines(question)} [y/N]: "), end="", soft_wrap=True)
    answer = sys.stdin.readline()
    if not answer and not sys.stdin.isatty():
        print_line("", error_console)
        exit_with_error("There is no terminal to answer on; confirm with `--yes`.", ExitCode.USAGE)
    if answer.strip().lower() not in {"y", "yes"}:
        raise typer.Abort


def count_nouns(count: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is one."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def exit_with_error(message: str, code: ExitCode = ExitCode.FAILED) -> NoReturn:
    print_error(message)
    raise typer.Exit(code)


@contextmanager
def file_errors(path: Path | str, code: ExitCode = ExitCode.USAGE) -> Generator[None]:
    """Exit with an error message for an OSError at a path, or for a file that is not UTF-8 text."""
    try:
        yield
    except OSError as error:
        exit_with_error(f"{path}: {error.strerror}", code)
    except UnicodeDecodeError:
        exit_with_error(f"{path} is not UTF-8 text.", code)


def exit_with_unknown(kind: str, name: str, known: Iterable[str], listing: str) -> NoReturn:
    """Exit because there is no such thing, with the names that are nearest and the command that lists all."""
    spellings = {one.casefold(): one for one in known}
    names = [spellings[one] for one in difflib.get_close_matches(name.casefold(), spellings)]
    nearest = f" Did you mean {' or '.join(names)}?" if names else ""
    exit_with_error(f"There is no {kind} {name!r}.{nearest} `{listing}` shows all.", ExitCode.NOT_FOUND)


def print_error(message: str) -> None:
    error_console.print(Text.assemble(("Error: ", "red"), sanitize_lines(message)))


def print_line(text: str, console: Console = console) -> None:
    """Print sanitized text."""
    console.print(Text(sanitize_lines(text)))


def print_field(name: str, value: str, width: int = 0, style: str = "bold") -> None:
    """Print a name and its value in two columns; further lines of the value are indented."""
    column = f"{name:<{width}}  "
    console.print(Text.assemble((column, style), sanitize_lines(value).replace("\n", "\n" + " " * len(column))))


def write_output(text: str, stream: TextIO) -> None:
    """Write an agent's output: unchanged to a pipe or a file, sanitized to a terminal."""
    stream.write(sanitize_lines(text) if stream.isatty() else text)
    stream.flush()


class OutputWriter:
    """Writes bytes unchanged to a pipe or a file, and as sanitized text to a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def write(self, data: bytes) -> None:
        if self._stream.isatty():
            write_output(self._decoder.decode(data), self._stream)
        else:
            self._stream.buffer.write(data)
            self._stream.buffer.flush()


def print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=sys.stdout.isatty()) + "\n")


def print_as_document(value: Any, form: OutputFormat) -> bool:
    """Print a value as a document if that is the format; return whether it was."""
    if form is not OutputFormat.TABLE:
        print_document(value, form)
    return form is not OutputFormat.TABLE


def print_document(value: Any, form: OutputFormat) -> None:
    """Print a value as JSON, or as YAML. Both are ASCII on a terminal."""
    if form is OutputFormat.YAML:
        from roost.cli.output.yaml import render_yaml  # slow to import

        sys.stdout.write(render_yaml(value, ascii_only=sys.stdout.isatty()))
    else:
        print_json(value)


def print_message(message: Any, form: OutputFormat) -> None:
    """Print one message of a stream: a line of JSON, or a document of YAML."""
    if form is OutputFormat.YAML:
        sys.stdout.write("---\n")
        print_document(message, form)
    else:
        sys.stdout.write(json.dumps(message, ensure_ascii=sys.stdout.isatty()) + "\n")
    sys.stdout.flush()


def print_rows(
    rows: Iterable[Mapping[str, Any]], columns: Sequence[str], form: OutputFormat, document: Any = None
) -> None:
    """Print records as a table of the given columns, or all fields as a document.

    document: printed in place of the records, which are then not evaluated, where a table words them otherwise.
    """
    if print_as_document(list(rows) if document is None else document, form):
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        heading = re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", column).upper()  # `createdAt`: CREATED AT
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(
            *(Text(sanitize_lines(_TIMESTAMP.sub(r"\1 \2", _format_cell(row.get(column))))) for column in columns)
        )
    console.print(table)


def print_record(record: Mapping[str, Any], form: OutputFormat, fields: Sequence[str] | None = None) -> None:
    """Print one line per field that is not empty, by default of all fields, or all fields as a document."""
    if print_as_document(record, form):
        return
    lines = {name: text for name in fields or record if (text := _format_cell(record.get(name)))}
    width = max(map(len, lines), default=0)
    for name, text in lines.items():
        print_field(name, text, width)


def format_age(moment: str | None) -> str:
    """Return a time of the API relative to now (`3 minutes ago`); nothing for None."""
    if moment is None:
        return ""
    seconds = (clock.utc_now() - datetime.fromisoformat(moment)).total_seconds()
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if (count := int(seconds // size)) > 0:
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "just now"


def _format_cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(map(_format_cell, value))  # pyright: ignore[reportUnknownArgumentType] - JSON
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def secret_commands(agent: str, name: str, *, exists: bool = False) -> str:
    """Return the commands that give an agent a secret, which may exist, quoted for a shell."""
    attach = shlex.join(["roost", "secrets", "attach", agent, name])
    return attach if exists else f"{shlex.join(['roost', 'secrets', 'create', name])} && {attach}"
