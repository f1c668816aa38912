"""Each command that docs, pages, messages and scripts show exists, with the options that they show."""

import re
from collections.abc import Iterator
from typing import Any

from tests.architecture.code import ROOT
from tests.cli.terminal import PROGRAM

SHOWN = re.compile(
    r"(?:^|[`'(>]|(?<!b)\"|\$ |&& |\| |\.venv/bin/)roost ((?:[a-z-]|\\\n)[^`\n]*(?:\\\n[^`\n]*)*)", re.MULTILINE
)
"""A command after a quote, a prompt or another command; labels of bytes are none."""
WORD = re.compile(r"[a-z][a-z0-9-]*")
OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]*|-[a-z])(?![\w-])")
END = re.compile(r"\s(?:\||&&|;|#|>|<<)|[;'\"]\s*(?:[,)\]};]|$)")
SOURCES = (
    *("README.md", "docs/**/*.md", "dashboard/src/**/*.ts", "dashboard/src/**/*.tsx"),
    *("roost/**/*.py", "scripts/*.py", "Makefile"),
)


def shown_commands() -> Iterator[tuple[str, str]]:
    for pattern in SOURCES:
        for file in sorted(ROOT.glob(pattern)):
            if "CHANGELOG" in file.name or not file.is_file():
                continue
            text = file.read_text()
            for found in SHOWN.finditer(text):
                line = text.count("\n", 0, found.start()) + 1
                words = found[1].replace("\\\n", " ")
                yield f"{file.relative_to(ROOT)}:{line}", END.split(words, maxsplit=1)[0]


def find_fault(typed: str) -> str | None:
    """Return what of a command does not exist; arguments are not looked at."""
    command: Any = PROGRAM
    words = typed.split()
    context: Any = command.make_context("roost", [], resilient_parsing=True)
    while hasattr(command, "commands") and words and WORD.fullmatch(words[0]):
        if words[0] not in command.list_commands(context):
            return f"no command {words[0]}"
        name, command, _ = command.resolve_command(context, [words.pop(0)])
        context = command.make_context(name, [], parent=context, resilient_parsing=True)
    if hasattr(command, "commands") or command.name in {"exec", "shell"}:
        return None
    known = {name for one in command.get_params(context) for name in (*one.opts, *one.secondary_opts)}
    return next((f"no option {name}" for name in OPTION.findall(" ".join(words)) if name not in known), None)


def test_every_command_that_is_shown_exists() -> None:
    shown = list(shown_commands())
    assert len(shown) > 500
    faults = [f"{place}: roost {typed}: {fault}" for place, typed in shown if (fault := find_fault(typed))]
    assert not faults, "\n".join(faults)


def test_unknown_commands_and_options_are_noticed() -> None:
    assert find_fault("skills push FOLDER") == "no command push"
    assert find_fault("keys create --nonsense x") == "no option --nonsense"
    assert find_fault("skills add FOLDER") is None
