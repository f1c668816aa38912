"""Names of commands are completed from a table, with the answers that Typer gives, and without its imports."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from roost.cli.command_names import TABLE, print_names
from roost.cli.main import cli
from tests.cli.test_main import list_loaded

GROUPS = list(json.loads(Path(TABLE).read_text()))


def completion(line: str, shell: str, action: str = "get-args") -> dict[str, str]:
    """Return the environment of a completion of the last word of a line."""
    return {
        "_ROOST_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": line.replace(" ", "\n"),
        "COMP_CWORD": str(line.count(" ")),
        "_TYPER_COMPLETE_ARGS": line,
        "_TYPER_COMPLETE_FISH_ACTION": action,
    }


def answer(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], **environment: str) -> str | None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    answered = print_names()
    printed = capsys.readouterr().out
    return printed if answered else None


@pytest.mark.parametrize("word", ["", "s"])
@pytest.mark.parametrize(("shell", "action"), [("bash", ""), ("zsh", ""), ("fish", "get-args"), ("fish", "is-args")])
def test_answers_are_those_of_typer(monkeypatch, capsys, shell: str, action: str, word: str) -> None:
    for group in GROUPS:
        given = completion(" ".join(["roost", *group.split(), word]), shell, action)
        expected = CliRunner().invoke(cli, [], env=given, prog_name="roost")
        found = answer(monkeypatch, capsys, **given)
        if word and found is None:
            assert not any(name.startswith(word) for name in json.loads(Path(TABLE).read_text())[group])
        else:
            assert (found, 0) == (expected.stdout, expected.exit_code)


@pytest.mark.parametrize(
    "line",
    ["roost agents show ", "roost agents list -", "roost -", "roost nothing", "roost agents 'l", "roost =", "roost"],
)
def test_other_completions_are_left_to_typer(monkeypatch, capsys, line: str) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert answer(monkeypatch, capsys, **completion(line, shell)) is None


def test_an_unknown_shell_is_left_to_typer(monkeypatch, capsys) -> None:
    for shell in ("powershell", "other", ""):
        assert answer(monkeypatch, capsys, **completion("roost ag", shell)) is None


@pytest.mark.parametrize("line", ["roost ag", "roost agents l", "roost gateways domains "])
def test_names_are_completed_without_typer(line: str) -> None:
    loaded = list_loaded(**completion(line, "bash"))
    assert "roost.cli.command_names" in loaded
    assert not loaded & {"typer", "pydantic", "rich", "pathlib", "roost.cli.main"}
