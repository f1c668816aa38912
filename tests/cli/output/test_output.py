"""Output: tables for people, JSON for scripts, and nothing of an agent's that styles or steers the terminal."""

import json
import sys

import pytest
from typer import Exit as Left

from roost.cli.output.output import (
    ExitCode,
    OutputFormat,
    exit_with_error,
    print_field,
    print_record,
    print_rows,
    write_output,
)
from tests.cli.terminal import run_on_terminal

HOSTILE = [
    "[red]styled[/red]",
    r"\[red]styled\[/red]",
    "\\\\[bold]x",
    "[link=http://evil.example]x[/link]",
    "\x1b[31mred",
    "\x1b]0;title\x07",
    "\x9b31m",
    "a\rb",
    "\u202eright to left",
    "[/]",
    ":warning:",
]


def test_rows_are_lines_that_a_script_can_cut(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        {"agentId": "a1", "name": "x" * 200, "createdAt": "2026-01-02T03:04:05.000001Z", "other": 1},
        {"agentId": "a2", "name": None, "createdAt": "", "other": 2},
    ]
    print_rows(rows, ("agentId", "name", "createdAt"), OutputFormat.TABLE)
    head, first, second = capsys.readouterr().out.splitlines()
    assert head.split() == ["AGENT", "ID", "NAME", "CREATED", "AT"]
    assert first.split() == ["a1", "x" * 200, "2026-01-02", "03:04"]
    assert second.split() == ["a2"]


def test_json_has_every_field_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"a": 1, "b": None, "c": ["ü", "\x1b"]}]
    print_rows(rows, ("a",), OutputFormat.JSON)
    assert json.loads(capsys.readouterr().out) == rows
    print_record(rows[0], OutputFormat.JSON)
    assert json.loads(capsys.readouterr().out) == rows[0]


def test_cells_of_all_kinds(capsys: pytest.CaptureFixture[str]) -> None:
    print_record(
        {"list": ["a", 2, None], "yes": True, "map": {"k": "ü"}, "none": None, "empty": []}, OutputFormat.TABLE
    )
    assert capsys.readouterr().out.splitlines() == ["list  a, 2, ", "yes   true", 'map   {"k": "ü"}']


def test_no_rows_are_an_empty_table(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows([], ("id",), OutputFormat.TABLE)
    assert capsys.readouterr().out.strip() == "ID"


def test_all_lines_of_a_field_stand_in_its_column(capsys: pytest.CaptureFixture[str]) -> None:
    print_field("reason", "one\ntwo", 8)
    assert capsys.readouterr().out == "reason    one\n          two\n"


def test_a_failure_is_one_line_on_standard_error_however_long(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Left) as left:
        exit_with_error("much " * 50, ExitCode.NOT_FOUND)
    assert left.value.exit_code == 5
    caught = capsys.readouterr()
    assert caught.out == ""
    assert caught.err.rstrip() == "Error: " + "much " * 49 + "much"


@pytest.mark.parametrize("text", HOSTILE)
def test_on_a_terminal_hostile_text_is_only_text(text: str) -> None:
    code = f"""
import sys
from pathlib import Path
from roost.cli.output.output import *
from roost.cli.client.transfer import save_chunks
text = {text!r}
print_record({{"f": text}}, OutputFormat.TABLE)
print_rows([{{"f": text}}], ["f"], OutputFormat.TABLE)
print_line(text)
print_error(text)
write_output(text + chr(10), sys.stdout)
print_json(text)
save_chunks([text.encode("utf-8", "replace")], Path("-"))
print()
"""
    plain = run_on_terminal(code.replace(f"text = {text!r}", "text = 'nothing'"))
    seen = run_on_terminal(code)
    assert seen.count("\x1b") == plain.count("\x1b")  # as many styles as harmless text has: those that are ours
    for sign in "\x07\r\x9b\u202e":
        assert sign not in seen
    if text.isprintable() and "\\" not in text:
        assert seen.count(text) == 7


def test_a_pipe_gets_what_a_command_wrote_to_the_byte(capsys: pytest.CaptureFixture[str]) -> None:
    write_output("\x1b[31mred\x1b[0m\r\n", sys.stdout)
    assert capsys.readouterr().out == "\x1b[31mred\x1b[0m\r\n"
