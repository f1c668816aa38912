"""Names are the field's standard terms, each with one meaning."""

import ast

from tests.architecture.code import modules


def test_a_class_name_is_defined_once() -> None:
    places: dict[str, list[str]] = {}
    for module in modules():
        for node in module.nodes:
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(f"{module.path}:{node.lineno}")
    doubled = [f"{name}: {', '.join(found)}" for name, found in places.items() if len(found) > 1]
    assert not doubled, "a reader who searches for one class finds several; rename all but one:\n" + "\n".join(doubled)
