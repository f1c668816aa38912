"""Examples: every command has one, every one parses, and the help shows them."""

import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest

from roost.cli.examples import EXAMPLES, command_words, examples_of
from tests.cli.terminal import PROGRAM, run
from tests.cli.test_main import ALL

VERBS = [path for path, command in ALL.items() if not hasattr(command, "commands")]


def parse(words: Sequence[str]) -> tuple[str, ...]:
    """Parse a command's words as the program does, without running it; return the command's path."""
    command, path = PROGRAM, []
    context = command.make_context("roost", list(words))
    while hasattr(command, "commands"):
        name, command, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        context = command.make_context(name, rest, parent=context)
        path.append(name)
    return tuple(path)


def test_every_example_parses_and_every_command_has_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "site").mkdir()
    (tmp_path / "report.pdf").touch()
    assert {parse(command_words(example)) for example in EXAMPLES} == set(VERBS)


def test_an_example_that_does_not_parse_is_noticed() -> None:
    with pytest.raises(Exception, match="No such option"):
        parse(shlex.split("agents list --nonsense"))


def test_a_noun_shows_one_example_of_some_verbs() -> None:
    shown = examples_of(["agents"], is_noun=True)
    verbs = [command_words(example)[1] for example in shown]
    assert len(verbs) == len(set(verbs)) == 5


@pytest.mark.parametrize("path", [("agents",), ("agents", "create"), ("gateways", "domains"), ("apply",)])
def test_help_ends_with_the_examples(path: tuple[str, ...]) -> None:
    _, _, shown = run(*path, "--help").output.partition("Examples:")
    expected = examples_of(path, is_noun=path not in VERBS)
    assert expected
    for example in expected:
        assert example.split()[-1] in shown
