"""Limits of sizes: lines of files and functions, statements of handlers, methods of classes."""

import ast
import asyncio
from collections.abc import Iterator, Mapping

from tests.architecture.code import ROOT, Module, functions, modules, parse, without_docstring

FILE_LINES = 400
FUNCTION_LINES = 60
HANDLER_STATEMENTS = 8
CLASS_METHODS = 12
PARAMETERS = 8
ASKED_FOR = {name for kind in (asyncio.Protocol, asyncio.DatagramProtocol, asyncio.Transport) for name in dir(kind)}
"""What asyncio wants of a protocol or a transport is not counted."""

BIGGER_CLASSES: Mapping[str, str] = {
    # class: why it may have more public methods
    **dict.fromkeys(
        ("Runtime", "AgentContainers", "KubernetesRuntime"),
        "the one contract of containers; a list cannot find one fast",
    ),
}
LONGER_SIGNATURES: Mapping[str, str] = {
    # class or function: why it may have more parameters
    "AgentDetails": "shows a part of nearly every slice of the agents API",
    "AgentExporter": "saves a part of nearly every slice of the agents API",
}


def test_files_are_small() -> None:
    tests = [parse(str(file.relative_to(ROOT)), file.read_text()) for file in sorted((ROOT / "tests").rglob("*.py"))]
    long = [f"{module.path}: {module.lines} lines" for module in (*modules(), *tests) if module.lines > FILE_LINES]
    assert not long, f"over {FILE_LINES} lines; split it:\n" + "\n".join(long)


def test_functions_are_small() -> None:
    long = [
        f"{module.path}:{function.lineno}: {function.name} has {lines} lines"
        for module in modules()
        for function in functions(module)
        if (lines := _lines(function)) > FUNCTION_LINES
    ]
    assert not long, f"over {FUNCTION_LINES} lines; split it:\n" + "\n".join(long)


def test_handlers_are_a_sentence() -> None:
    long = [
        f"{module.path}:{handler.lineno}: {handler.name} has {count} statements"
        for module in modules()
        for handler in _handlers(module)
        if (count := _statements(handler)) > HANDLER_STATEMENTS
    ]
    assert not long, "a handler says who, what, do, show; the rest belongs in the service:\n" + "\n".join(long)


def test_handlers_are_found() -> None:
    source = "@router.get('/v0/x')\nasync def x(caller):\n    if caller:\n        return 1\n    return 2\n"
    assert [_statements(handler) for handler in _handlers(parse("roost/agents/x/api.py", source))] == [3]
    assert any(list(_handlers(module)) for module in modules())


def test_classes_have_few_public_methods() -> None:
    wide = [
        f"{module.path}:{node.lineno}: {node.name} has {count} public methods"
        for module in modules()
        for node in module.nodes
        if isinstance(node, ast.ClassDef) and node.name not in BIGGER_CLASSES
        if (count := _public_methods(node)) > CLASS_METHODS
    ]
    assert not wide, f"over {CLASS_METHODS}; split it by what it serves:\n" + "\n".join(wide)


def test_bigger_classes_are_still_big() -> None:
    sizes = {
        node.name: _public_methods(node)
        for module in modules()
        for node in module.nodes
        if isinstance(node, ast.ClassDef) and node.name in BIGGER_CLASSES
    }
    idle = [name for name in BIGGER_CLASSES if sizes.get(name, 0) <= CLASS_METHODS]
    assert not idle, f"BIGGER_CLASSES lets {', '.join(idle)} be big without need: take it out"


def test_signatures_are_short() -> None:
    long = [f"{place}: {name} has {count} parameters" for place, name, count in _long_signatures()]
    assert not [line for line in long if line.split()[1] not in LONGER_SIGNATURES], (
        f"over {PARAMETERS} parameters; give it one object for those that go together:\n" + "\n".join(long)
    )


def test_longer_signatures_are_still_long() -> None:
    idle = set(LONGER_SIGNATURES) - {name for _, name, _ in _long_signatures()}
    assert not idle, f"LONGER_SIGNATURES lets {', '.join(idle)} be long without need: take it out"


def test_every_module_says_what_it_is() -> None:
    mute = [module.path for module in modules() if not _introduced(module)]
    assert not mute, "a module begins with a docstring: what it owns, what it refuses:\n" + "\n".join(mute)


def test_relative_imports_are_the_wardens_own() -> None:
    found = [
        f"{module.path}:{node.lineno}"
        for module in modules()
        for node in module.nodes
        if isinstance(node, ast.ImportFrom) and node.level and not module.within("roost/warden/*")
    ]
    assert not found, "write the whole name of what you import:\n" + "\n".join(found)


def _lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    body = without_docstring(function.body)
    return 0 if not body else (body[-1].end_lineno or body[-1].lineno) - body[0].lineno + 1


def test_private_fields_and_those_of_groups_are_parameters() -> None:
    source = "@dataclass(frozen=True)\nclass Sums:\n    {0}a: int\n    {0}b: int = 1\n    c: int = field(init=False)\n"
    for path, prefix, expected in (("roost/app/x.py", "", [2]), ("roost/x.py", "_", [2]), ("roost/x.py", "", [])):
        module = parse(path, source.format(prefix))
        assert [count for _, _, count in _field_counts(module)] == expected


def _long_signatures() -> Iterator[tuple[str, str, int]]:
    """Yield place, name and count of long signatures; each parameter of a command in `cli/` is an option of it."""
    for module in modules():
        yield from ((place, name, count) for place, name, count in _field_counts(module) if count > PARAMETERS)
        if module.within("roost/cli/*"):
            continue
        owners = {part: node.name for node in module.nodes if isinstance(node, ast.ClassDef) for part in node.body}
        for function in functions(module):
            given = function.args
            names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
            count = len([name for name in names if name not in {"self", "cls"}])
            if count > PARAMETERS:
                name = owners.get(function, function.name) if function.name == "__init__" else function.name
                yield f"{module.path}:{function.lineno}", name, count


def _field_counts(module: Module) -> Iterator[tuple[str, str, int]]:
    """Yield place, name and number of parameters of dataclasses that are services or groups of these, not records."""
    for node in module.nodes:
        if isinstance(node, ast.ClassDef) and any("dataclass" in ast.unparse(one) for one in node.decorator_list):
            fields = [part for part in node.body if isinstance(part, ast.AnnAssign)]
            given = [one for one in fields if one.value is None or "init=False" not in ast.unparse(one.value)]
            if module.within("roost/app/*") or any(ast.unparse(one.target).startswith("_") for one in given):
                yield f"{module.path}:{node.lineno}", node.name, len(given)


def _handlers(module: Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    if module.path.endswith("/api.py"):
        for function in functions(module):
            if any("router" in ast.unparse(decorator) for decorator in function.decorator_list):
                yield function


def _statements(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return sum(isinstance(node, ast.stmt) for part in without_docstring(function.body) for node in ast.walk(part))


def _public_methods(node: ast.ClassDef) -> int:
    return sum(
        isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)
        and not part.name.startswith("_")
        and part.name not in ASKED_FOR
        for part in node.body
    )


def _introduced(module: Module) -> bool:
    first = (ast.get_docstring(module.tree) or "").split("\n\n")[0]
    return len(first) > 10 and first.rstrip()[-1] in ".:`"
