from pathlib import Path

import command_names

from roost.cli.command_names import TABLE


def test_the_table_is_that_of_the_program() -> None:
    assert Path(TABLE).read_text() == command_names.render_table(), f"run {command_names.COMMAND}"
