"""The composition in `app/` passes each part to a constructor, by its own type; nothing is set later."""

import ast
from collections.abc import Iterator

import pytest

from tests.architecture.code import Module, modules, parse


def test_parts_are_passed_to_constructors() -> None:
    found = [f"{one.path}:{line}" for one in modules() if one.within("roost/app/*") for line in _find_others(one)]
    assert not found, "build what others need before them, and pass it by its name and type:\n" + "\n".join(found)


@pytest.mark.parametrize(
    "line", ["files.listener = webhooks.add", "reader.limits.size += 1", "ChatService(**parts)", "ChatService(*parts)"]
)
def test_other_ways_are_found(line: str) -> None:
    assert list(_find_others(parse("roost/app/x.py", line)))


def _find_others(module: Module) -> Iterator[int]:
    """Yield lines that set an attribute of another object, or pass parts that the reader cannot see."""
    for node in module.nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) != "self":
            yield node.lineno
        if isinstance(node, ast.Call) and any(keyword.arg is None for keyword in node.keywords):
            yield node.lineno
        if isinstance(node, ast.Call) and any(isinstance(one, ast.Starred) for one in node.args):
            yield node.lineno
