"""Find kinds of lines in a module, for `rules.py`."""

import ast
import re
from collections.abc import Callable, Iterator

from tests.architecture.code import Module, imports_of, literals, references

Find = Callable[[Module], Iterator[int]]


def uses(*wanted: str) -> Find:
    """Lines that use one of the names; `secrets.*` is anything of that module."""
    exact = {name for name in wanted if not name.endswith(".*")}
    prefixes = tuple(name[:-1] for name in wanted if name.endswith(".*"))

    def find(module: Module) -> Iterator[int]:
        for line, name in references(module):
            if name in exact or name.startswith(prefixes):
                yield line

    return find


def imports_from(package: str, *but: str) -> Find:
    """Lines that import the package, other than the names that anybody may have (types that appear in signatures)."""

    def find(module: Module) -> Iterator[int]:
        for found in imports_of(module):
            if found.target.partition(".")[0] == package and found.name not in but:
                yield found.line

    return find


def find_status_numbers(module: Module) -> Iterator[int]:
    for node in module.nodes:
        if isinstance(node, ast.keyword) and node.arg in ("status", "status_code") and _is_status(node.value):
            yield node.value.lineno
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "status" and _is_status(value):
                    yield value.lineno


def _is_status(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int) and 100 <= node.value < 600


_CREDENTIAL = re.compile(r"authorization|gw_token|x-api-key|(bearer|basic) .*", re.IGNORECASE)


def find_credentials(module: Module) -> Iterator[int]:
    for line, text in literals(module):
        if _CREDENTIAL.fullmatch(text):
            yield line


def find_tasks(module: Module) -> Iterator[int]:
    named = uses("threading.Thread", "concurrent.futures.*", "multiprocessing.*", "asyncio.to_thread", "_thread.*")
    yield from named(module)
    for line, name in references(module):
        if name.rpartition(".")[2] in ("create_task", "ensure_future", "run_in_executor"):
            yield line


_URL_PREFIX = re.compile(r"(^|[ (|^])/(v0|v1|v3|psa|pinning|ipfs)([/?(|$ ]|$)")


def find_url_prefixes(module: Module) -> Iterator[int]:
    for line, text in literals(module):
        if _URL_PREFIX.search(text):
            yield line


def find_sleeping_loops(module: Module) -> Iterator[int]:
    for loop in module.nodes:
        for node in ast.walk(loop) if isinstance(loop, ast.While) else ():
            if isinstance(node, ast.Call) and re.fullmatch(r"asyncio\.sleep\((?!0\)).*\)", ast.unparse(node)):
                yield node.lineno  # `sleep(0)` gives others a turn and is no pause


_CAMEL = re.compile(r"[a-z]+([A-Z][a-z0-9]+)+")


def find_camel_case(module: Module) -> Iterator[int]:
    """Find such texts but the names of fields that errors tell clients."""
    lines = module.source.splitlines()
    for line, text in literals(module):
        if _CAMEL.fullmatch(text) and not re.search(rf'\bfield(: str)? ?= ?"{text}"', lines[line - 1]):
            yield line


def find_inner_imports(module: Module) -> Iterator[int]:
    for found in imports_of(module):
        if found.inner:
            yield found.line


_EXEMPTION = re.compile(
    r"#\s*(?:noqa: [A-Z]+[0-9]+(?:, ?[A-Z]+[0-9]+)*|(?:type|pyright): ignore(?:\[[^\]]*\])?)\s*(.*)$"
)


def find_bare_exemptions(module: Module) -> Iterator[int]:
    for number, line in enumerate(module.source.splitlines(), 1):
        if (found := _EXEMPTION.search(line)) and not found[1].lstrip("#- "):
            yield number


def find_packed_literals(module: Module) -> Iterator[int]:
    for node in module.nodes:
        if isinstance(node, ast.Starred) and isinstance(node.value, ast.Tuple | ast.List):
            yield node.lineno
