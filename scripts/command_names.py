"""Write the table of the completion of commands, made from the program: `.venv/bin/python scripts/command_names.py`."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cli_reference import is_group

from roost.cli.command_names import TABLE
from roost.cli.main import create_program

COMMAND = ".venv/bin/python scripts/command_names.py"


def render_table() -> str:
    """Return the names below the program and below each group, a group in one line."""
    program = create_program()
    program.load_commands()
    lines = (f"{json.dumps(group)}: {json.dumps(names)}" for group, names in _list_names((), program))
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _list_names(path: tuple[str, ...], group: Any) -> Iterator[tuple[str, Mapping[str, str]]]:
    visible = {name: command for name, command in group.commands.items() if not command.hidden}
    yield " ".join(path), {name: command.get_short_help_str() for name, command in visible.items()}
    for name, command in visible.items():
        if is_group(command):
            yield from _list_names((*path, name), command)


if __name__ == "__main__":
    Path(TABLE).write_text(render_table())
