"""The program itself: help for every noun and verb, one line for what is wrong, and a start that loads no server."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.core import TyperCommand, TyperGroup

from roost import __version__
from roost.cli.commands import COMMANDS
from tests.cli.terminal import PROGRAM, FakeServer, run


def commands(
    command: TyperCommand | TyperGroup, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], TyperCommand | TyperGroup]]:
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


def test_the_guide_says_of_every_command_what_it_works_on() -> None:
    guide = (Path(__file__).parents[2] / "docs/guides/operating.md").read_text()
    rows = re.findall(r"^\| commands \| work on .*?\n\n", guide, re.MULTILINE | re.DOTALL)
    named = re.findall(r"`([a-z-]+)(?: [a-z-]+)*`(?=[^|]*\|[^|]*\|[^|]*\|$)", rows[0], re.MULTILINE)
    assert {path[0] for path in ALL if len(path) == 1} - set(named) == set()


@pytest.mark.parametrize("noun", ["files", "gateways", "groups", "signatures", "webhooks"])
def test_the_guide_names_every_command_of_storage(noun: str) -> None:
    guide = (Path(__file__).parents[2] / "docs/guides/storage.md").read_text()
    rows = "".join(line for line in guide.splitlines() if line.startswith(f"| `roost {noun}"))
    named = re.findall(rf"`(?:roost {noun} )?([a-z-]+)(?: [A-Z]+)?`", rows)
    assert {path[1] for path in ALL if len(path) == 2 and path[0] == noun} - set(named) == set()


@pytest.mark.parametrize(
    "typed",
    [
        *("hosts list", "hosts remove x --yes", "scrub", "secrets rotate-key", "doctor", "proxy-config caddy"),
        *("engines list", "engines install hermes", "engines remove hermes@1.0 --yes"),
    ],
)
@pytest.mark.parametrize("environment", [{"ROOST_URL": "https://roost.example"}, {"ROOST_CONTEXT": "work"}])
def test_a_command_of_this_machine_is_not_meant_for_another_server(typed: str, environment: dict[str, str]) -> None:
    refused = run(*typed.split(), **environment)
    assert (refused.exit_code, "works on a data folder of this machine" in refused.stderr) == (2, True)


@pytest.mark.parametrize("path", [path for path, command in ALL.items() if hasattr(command, "commands")], ids=" ".join)
def test_a_noun_alone_shows_its_verbs(path: tuple[str, ...]) -> None:
    assert "Commands" in run(*path).output


def test_version_option_prints_the_version() -> None:
    assert run("--version").stdout == f"roost {__version__}\n"


@pytest.mark.parametrize("typed", [["nonsense"], ["agents", "nonsense"], ["list", "--nonsense"]])
def test_unknown_commands_are_wrong_usage(typed: list[str]) -> None:
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
def test_errors_end_in_one_line(tmp_path, typed: list[str], environment: dict[str, str], code: int, told: str) -> None:
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


SERVER_MODULES = {"fastapi", "yaml", "websockets", "sqlalchemy", "uvicorn", "alembic", "cryptography", "roost.app"}


def list_loaded(*arguments: str, **environment: str) -> set[str]:
    """Run the program; return the modules that are imported at its end."""
    code = (
        "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); import roost.__main__ as it"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; it.main()", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stderr.split())


def list_loaded_by_completion(line: str) -> set[str]:
    words = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    return list_loaded(_ROOST_COMPLETE="complete_bash", **words)


def test_all_commands_load_without_the_server() -> None:
    code = (
        "import sys; from roost.cli.main import create_program; create_program().load_commands(); print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "roost.cli.agents.agents" in loaded
    assert not set(loaded) & SERVER_MODULES


def test_the_program_alone_loads_no_command() -> None:
    for loaded in (
        list_loaded("--version"),
        list_loaded("--help"),
        list_loaded_by_completion("roost -"),
        list_loaded_by_completion("roost --context l"),
    ):
        assert "roost.cli.main" in loaded
        modules = {f"roost.cli.{source.target.partition(':')[0]}" for source in COMMANDS.values()}
        assert not loaded & {*SERVER_MODULES, *modules, "httpx2"}


@pytest.mark.parametrize(("group", "other"), [("agents", "files"), ("files", "agents"), ("keys", "agents")])
def test_a_completed_group_loads_no_other_and_no_client(group: str, other: str) -> None:
    loaded = list_loaded_by_completion(f"roost {group} list -")
    modules = {name: f"roost.cli.{COMMANDS[name].target.partition(':')[0]}" for name in (group, other)}
    assert modules[group] in loaded
    assert not loaded & {*SERVER_MODULES, modules[other], "httpx2"}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_summary_begins_the_help(name: str) -> None:
    assert re.split(r"(?<=\.)\s", ALL[(name,)].help or "")[0] == COMMANDS[name].summary


def test_an_argument_that_is_no_text(server: FakeServer) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "roost", "hub", "search", b"\xff"],
        env={**os.environ, **server.environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (2, "Error: An argument is not UTF-8 text.\n")


UNUSED_BY_AN_IDLE_SERVER = {"obstore", "dns", "rich.progress", "alembic", "psycopg"}


def test_the_server_imports_libraries_when_it_uses_them() -> None:
    """Each takes 0.5 to 10 MB of memory."""
    code = "import roost.cli.server.up, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "roost.app.server" in loaded
    assert not set(loaded) & UNUSED_BY_AN_IDLE_SERVER
