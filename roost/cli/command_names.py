"""Completion of the names of groups and commands from a table, which spares the imports of the program.

`command_names.json` has the names below the program and below each group, with the help that a completion shows. It is
made from the program (decision 0044).
"""

import json
import os
import shlex
import sys
from collections.abc import Mapping

TABLE = __file__.removesuffix("py") + "json"
_ZSH_ESCAPES = str.maketrans({'"': '""', "'": "''", "$": "\\$", "`": "\\`", ":": "\\\\:"})


def run_program() -> None:
    """Complete the name of a command, or import the program and run it."""
    if "_ROOST_COMPLETE" not in os.environ or not print_names():
        from roost.cli.main import run_cli

        run_cli()


def print_names() -> bool:
    """Answer a shell that completes the name of a command, as Typer would; return whether it was answered."""
    shell = os.environ.get("_ROOST_COMPLETE", "").removeprefix("complete_")
    try:
        line = os.environ["COMP_WORDS" if shell == "bash" else "_TYPER_COMPLETE_ARGS"]
        words = shlex.split(line)
        position = int(os.environ["COMP_CWORD"]) if shell == "bash" else len(words) - (not line.endswith(" "))
    except (KeyError, ValueError):  # an open quote
        return False
    group, incomplete = " ".join(words[1:position]), "".join(words[position : position + 1])
    with open(TABLE, encoding="utf-8") as file:  # noqa: PTH123 - pathlib is slow to import
        names: Mapping[str, str] = json.load(file).get(group, {})
    answer = _format_names({name: names[name] for name in names if name.startswith(incomplete)}, shell)
    sys.stdout.write(answer or "")
    return answer is not None


def _format_names(found: Mapping[str, str], shell: str) -> str | None:
    """Return the answer; None where there is no name, or for another shell."""
    action = os.environ.get("_TYPER_COMPLETE_FISH_ACTION")
    if found and shell == "bash":
        return "\n".join(found) + "\n"
    if found and shell == "zsh":
        rows = "\n".join(f'"{name}":"{text.translate(_ZSH_ESCAPES)}"' for name, text in found.items())
        return f"_arguments '*: :(({rows}))'\n"
    if found and shell == "fish" and action == "get-args":
        return "".join(f"{name}\t{text}\n" for name, text in found.items())
    return "" if found and shell == "fish" and action == "is-args" else None
