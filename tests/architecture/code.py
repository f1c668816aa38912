"""The package as these tests see it: every module parsed once, its imports resolved, its names spelt out in full."""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STDLIB = frozenset(sys.stdlib_module_names)


@dataclass(frozen=True)
class Module:
    """`path` is relative to the checkout; `name` is what an import says."""

    path: str
    source: str
    tree: ast.Module

    @property
    def name(self) -> str:
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        return tuple(ast.walk(self.tree))

    @property
    def lines(self) -> int:
        return self.source.count("\n")

    def within(self, *patterns: str) -> bool:
        return any(fnmatch(self.path, pattern) for pattern in patterns)


@dataclass(frozen=True)
class Import:
    """One imported thing. `target` is a module; `name` is what is taken out of it, if anything is."""

    module: Module
    target: str
    name: str | None
    line: int
    inner: bool
    for_types: bool

    @property
    def place(self) -> str:
        return f"{self.module.path}:{self.line}"


def parse(path: str, source: str) -> Module:
    return Module(path, source, ast.parse(source, path))


CATALOGUE = ROOT / "roost" / "agents" / "library" / "hub" / "catalogue"
"""Skills whose scripts are data of this package and run in agents' containers."""


@cache
def modules() -> tuple[Module, ...]:
    files = sorted(set((ROOT / "roost").rglob("*.py")) - set(CATALOGUE.rglob("*.py")))
    return tuple(parse(str(file.relative_to(ROOT)), file.read_text()) for file in files)


@cache
def names() -> frozenset[str]:
    return frozenset(module.name for module in modules())


@cache
def imports() -> tuple[Import, ...]:
    return tuple(found for module in modules() for found in imports_of(module))


@cache
def imports_of(module: Module) -> tuple[Import, ...]:
    return tuple(_imports_of(module))


@cache
def references(module: Module) -> tuple[tuple[int, str], ...]:
    """Every use of a name, spelt out through the imports: `from time import time` and `time()` is `time.time`.

    What belongs to something that is not imported has no known beginning: `loop.create_task` is `?.create_task`.
    """
    aliases = _aliases(module)
    found: list[tuple[int, str]] = []
    for node in module.nodes:
        if isinstance(node, ast.Attribute | ast.Name) and (written := _written(node)):
            first, dot, rest = written.partition(".")
            found.append((node.lineno, aliases.get(first, "?" if dot else first) + dot + rest))
    return tuple(found)


@cache
def literals(module: Module) -> tuple[tuple[int, str], ...]:
    """Every string and byte string that is not documentation, parts of f-strings among them."""
    prose = {id(node.value) for node in module.nodes if isinstance(node, ast.Expr)}
    found: list[tuple[int, str]] = []
    for node in module.nodes:
        if isinstance(node, ast.Constant) and id(node) not in prose:
            if isinstance(node.value, str):
                found.append((node.lineno, node.value))
            elif isinstance(node.value, bytes):
                found.append((node.lineno, node.value.decode("latin-1")))
    return tuple(found)


def functions(module: Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in module.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    match body[0]:
        case ast.Expr(ast.Constant(str())):
            return body[1:]
    return body


def _imports_of(module: Module) -> Iterator[Import]:
    for node, inner, for_types in _import_statements(module.tree, inner=False, for_types=False):
        if isinstance(node, ast.Import):
            pairs: list[tuple[str, str | None]] = [(alias.name, None) for alias in node.names]
        else:
            base = _base(module, node)
            pairs = [
                (f"{base}.{alias.name}", None) if f"{base}.{alias.name}" in names() else (base, alias.name)
                for alias in node.names
            ]
        for target, name in pairs:
            yield Import(module, target, name, node.lineno, inner, for_types)


def _import_statements(
    node: ast.AST, *, inner: bool, for_types: bool
) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, inner, for_types
        else:
            deeper = inner or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            typing = for_types or (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test))
            yield from _import_statements(child, inner=deeper, for_types=typing)


def _base(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    folder = module.path.split("/")[: -node.level]
    return ".".join([*folder, *([node.module] if node.module else [])])


def _aliases(module: Module) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in module.nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                found[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom):
            base = _base(module, node)
            for alias in node.names:
                found[alias.asname or alias.name] = f"{base}.{alias.name}"
    return found


def _written(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        inner = _written(node.value)
        return f"{inner}.{node.attr}" if inner else f"?.{node.attr}"
    return None
