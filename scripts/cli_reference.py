"""Render the command line as Markdown pages, one for each noun, from the program itself. Pure."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, get_args

Pages = Mapping[str, str]
_NO_BRACES = str.maketrans("", "", "{}")
TOP = "index.md"
_SKIPPED = ("--install-completion", "--show-completion")
_HEAD = """# Command line

Generated from the program. Every command explains itself with `--help`. The program is `.venv/bin/roost` in a
checkout. Commands talk to the server that `--context`, `--data`, `ROOST_URL`, `ROOST_CONTEXT` or `ROOST_DATA` names,
else to that of the last `roost login`, else to that of the data folder `.roost` ([guide](../guides/cli.md)).

"""


def render_pages(root: Any) -> Pages:
    """Return the pages by their file name. root: the group of the program."""
    groups = {name: command for name, command in root.commands.items() if is_group(command)}
    single = {name: command for name, command in root.commands.items() if not is_group(command)}
    pages = {f"{name}.md": "\n".join(_group_page(f"roost {name}", group)) for name, group in groups.items()}
    return {TOP: "\n".join(_index_page(single, groups)), **pages}


def is_group(command: Any) -> bool:
    """Return whether a command has commands of its own."""
    return hasattr(command, "commands")


def list_commands(group: Any, prefix: str = "roost") -> Iterator[tuple[str, Any]]:
    """List the commands below a group by what is typed, groups left out."""
    for name, command in group.commands.items():
        if command.hidden:
            continue
        if is_group(command):
            yield from list_commands(command, f"{prefix} {name}")
        else:
            yield f"{prefix} {name}", command


def _index_page(single: Mapping[str, Any], groups: Mapping[str, Any]) -> Iterator[str]:
    yield _HEAD
    yield from ["| command | what it does |", "|---|---|"]
    for name, command in single.items():
        yield f"| [`roost {name}`](#roost-{name}) | {_first_line(command)} |"
    for name, group in groups.items():
        yield f"| [`roost {name}`]({name}.md) | {_first_line(group)} |"
    yield ""
    for name, command in single.items():
        yield from _command_section(f"roost {name}", command)


def _group_page(path: str, group: Any) -> Iterator[str]:
    yield f"# {path}\n"
    yield from _description(group)
    commands = dict(list_commands(group, path))
    yield from ["| command | what it does |", "|---|---|"]
    for one, command in commands.items():
        yield f"| [`{one}`](#{one.replace(' ', '-')}) | {_first_line(command)} |"
    yield ""
    for one, command in commands.items():
        yield from _command_section(one, command)


def _command_section(path: str, command: Any) -> Iterator[str]:
    usage = " ".join(command.collect_usage_pieces(command.make_context("", [], resilient_parsing=True)))
    yield f"## {path}\n"
    yield from _description(command)
    yield f"```\n{path} {usage.translate(_NO_BRACES)}\n```\n"
    parameters = [one for one in command.params if not getattr(one, "hidden", False) and one.opts[0] not in _SKIPPED]
    if parameters:
        yield from ["| argument or option | meaning |", "|---|---|"]
        yield from (f"| {_parameter_name(one)} | {_parameter_text(one)} |" for one in parameters)
        yield ""
    if lines := _epilog_examples(command.epilog):
        yield "\n".join(["Examples:\n", "```", *lines, "```\n"])


def _description(command: Any) -> Iterator[str]:
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        if paragraph.startswith("\b"):  # a block that click prints as it is
            yield f"```\n{paragraph.lstrip(chr(8)).strip()}\n```\n"
        else:
            yield f"{_escape(paragraph)}\n"


def _epilog_examples(epilog: str | None) -> Sequence[str]:
    lines = (line.strip(" \b") for line in inspect.cleandoc(epilog or "").splitlines())
    return [line for line in lines if line.startswith(("roost ", "$ ", "#"))]


def _parameter_name(parameter: Any) -> str:
    value = parameter.metavar or _value_name(parameter.type_descriptor.annotation)
    if parameter.param_type_name == "argument":
        return f"`{parameter.metavar or parameter.name.upper()}`"
    names = ", ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])
    return names if parameter.is_flag else f"{names} `{value}`"


def _value_name(kind: Any) -> str:
    kind = next(iter(get_args(kind)), kind)  # of a list
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "\\|".join(str(one.value) for one in kind)
    return getattr(kind, "__name__", "value").upper().replace("STR", "TEXT").replace("INT", "NUMBER")


def _parameter_text(parameter: Any) -> str:
    text = _escape(getattr(parameter, "help", "") or "")
    default = parameter.default
    if default in (None, False, "", ()) or callable(default) or parameter.required or "default" in text:
        return text
    return f"{text} Default: `{getattr(default, 'value', default)}`.".strip()


def _first_line(command: Any) -> str:
    return _escape(inspect.cleandoc(command.help or "").split("\n\n")[0])


def _escape(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
