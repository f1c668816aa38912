"""The errors that docstrings name exist."""

import ast
import builtins
import re
from collections.abc import Iterator

from tests.architecture.code import Module, modules

_RAISES = re.compile(r"\b[Rr]aises?\b([^.:;]*)")
_CLASS = re.compile(r"\b(?:[A-Z]+[a-z0-9]+){2,}\b")
_FOREIGN = frozenset({"URLError", "CancelledError", "KiB"})


def test_docstrings_name_errors_that_exist() -> None:
    known = _FOREIGN | set(dir(builtins))
    known |= {node.name for module in modules() for node in module.nodes if isinstance(node, ast.ClassDef)}
    unknown = [
        f"{module.path}:{line}: {name}" for module in modules() for line, name in _named(module) if name not in known
    ]
    assert not unknown, "these errors were renamed or removed:\n" + "\n".join(unknown)


def _named(module: Module) -> Iterator[tuple[int, str]]:
    for node in (module.tree, *module.nodes):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for text in _RAISES.findall(ast.get_docstring(node) or ""):
                yield from ((getattr(node, "lineno", 1), name) for name in _CLASS.findall(text))
