"""All attributes of an object exist once `__init__` is over."""

import ast
from collections.abc import Iterator

from tests.architecture.code import modules

_INITIALISERS = frozenset({"__init__", "__new__", "__post_init__"})


def test_no_attribute_is_created_outside_init() -> None:
    classes = {node.name: node for module in modules() for node in module.nodes if isinstance(node, ast.ClassDef)}
    late = [
        f"{name}.{attribute} (line {line})"
        for name, node in classes.items()
        if (known := _created(node, classes)) is not None
        for attribute, line in _assigned(node, initialising=False)
        if attribute not in known
    ]
    assert not late, f"assign these in __init__: {late}"


def _created(node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> set[str] | None:
    """Return the attributes that exist after `__init__`; None for a class whose base is a framework's."""
    found = {attribute for attribute, _ in _assigned(node, initialising=True)}
    for statement in node.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        found.update(target.id for target in targets if isinstance(target, ast.Name))
    for base in node.bases:
        name = ast.unparse(base).partition("[")[0].rpartition(".")[2]
        if name in classes:
            inherited = _created(classes[name], classes)
            if inherited is None:
                return None
            found |= inherited
        elif name not in {"ABC", "Generic", "Protocol", "Exception", "StrEnum", "Enum", "NamedTuple"}:
            return None
    return found


def _assigned(node: ast.ClassDef, *, initialising: bool) -> Iterator[tuple[str, int]]:
    for function in node.body:
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if (function.name in _INITIALISERS) is initialising:
            for item in ast.walk(function):
                if isinstance(item, ast.Attribute) and isinstance(item.ctx, ast.Store) and _is_self(item.value):
                    yield item.attr, item.lineno


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"
