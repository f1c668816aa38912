"""The program itself: help for every noun and verb, one line for what is wrong, and a start that loads no server."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click import Command

from roost import __version__
from tests.cli.terminal import PROGRAM, FakeServer, run


def commands(command: Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Command]]:
    yield path, command
    for name, below in getattr(command, "commands", {}).items():
        yield from commands(below, (*path, name))


ALL = dict(commands(PROGRAM))


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_every_command_explains_itself_and_all_that_it_takes(path: tuple[str, ...]) -> None:
    shown = run(*path, "--help")
    assert shown.exit_code == 0
    assert ALL[path].help
    for parameter in ALL[path].params:
        assert getattr(parameter, "help", None), f"{' '.join(path)} does not explain {parameter.name}"


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_the_usage_has_one_pair_of_brackets_and_one_ellipsis(path: tuple[str, ...]) -> None:
    arguments = [parameter for parameter in ALL[path].params if parameter.param_type_name == "argument"]
    for name in (argument.metavar or "" for argument in arguments):
        assert not name.startswith("[")
        assert not name.endswith("...")


def test_the_readme_names_every_command() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    (row,) = (line for line in readme.splitlines() if line.startswith("| `.venv/bin/roost --help`"))
    assert sorted(re.findall(r"`([\w-]+)`", row)) == sorted(path[0] for path in ALL if len(path) == 1)


@pytest.mark.parametrize("path", [path for path, command in ALL.items() if hasattr(command, "commands")], ids=" ".join)
def test_a_noun_alone_shows_its_verbs(path: tuple[str, ...]) -> None:
    assert "Commands" in run(*path).output


def test_the_version() -> None:
    assert run("--version").stdout == f"roost {__version__}\n"


@pytest.mark.parametrize("typed", [["nonsense"], ["agents", "nonsense"], ["list", "--nonsense"]])
def test_what_there_is_not(typed: list[str]) -> None:
    assert run(*typed).exit_code == 2


@pytest.mark.parametrize(
    ("typed", "environment", "code", "told"),
    [
        (["up"], {"ROOST_PORT": "http"}, 2, "Error: port: "),
        (["up"], {"ROOST_DATA": "/proc/nowhere"}, 2, "Error: data: /proc/nowhere"),
        (["keys", "create"], {"ROOST_DATA": "/proc/nowhere"}, 2, "Error: /proc/nowhere is no data folder"),
        (["keys", "create", "--scope", "no:such"], {}, 2, "Error: Unknown scope: no:such"),
        (["keys", "create"], {"ROOST_KEK": "short"}, 2, "Error: kek: "),
        (["up"], {"ROOST_HOST": "0.0.0.0"}, 2, "Error: host: 0.0.0.0"),
    ],
)
def test_what_is_wrong_ends_in_one_line(
    tmp_path, typed: list[str], environment: dict[str, str], code: int, told: str
) -> None:
    (tmp_path / "data").mkdir()
    ended = subprocess.run(
        [sys.executable, "-m", "roost", *typed],
        env={"ROOST_DATA": str(tmp_path / "data"), "HOME": str(tmp_path), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (code, "")
    assert ended.stderr.startswith(told)
    assert ended.stderr.count("\n") == 1


def test_most_commands_do_without_the_server() -> None:
    """The help, and what only talks to a server, load in a moment."""
    code = "import sys, roost.cli.main; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    for heavy in ("fastapi", "yaml", "websockets", "sqlalchemy", "uvicorn", "alembic", "cryptography", "roost.app"):
        assert heavy not in loaded


def test_an_argument_that_is_no_text(server: FakeServer) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "roost", "hub", "search", b"\xff"],
        env={**os.environ, **server.environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (2, "Error: An argument is not UTF-8 text.\n")
